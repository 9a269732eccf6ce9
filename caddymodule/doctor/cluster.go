package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// checkCluster checks whether the nodes of the cluster can be reached. Only a running server knows them.
func checkCluster(ctx context.Context, s *Subject) []Finding {
	isCluster := func(o resource.Setting) bool { return o.Name == "cluster" && o.Source == resource.FromFile }
	if s.Config == nil || !slices.ContainsFunc(s.Config.Settings, isCluster) {
		return nil
	}
	if s.Server == nil {
		return ok("The server is a node of a cluster. Which others there are shows once it runs.")
	}
	var o resource.Overview
	if err := s.Server.Get(ctx, "/api/v1/ps", &o); err != nil {
		return one(Warning, fmt.Sprintf("What the nodes of the cluster are doing isn't known: %v.", err), `See "lmcaddy log".`)
	}
	if len(o.Nodes) == 0 {
		return one(Problem, "The nodes of the cluster can't be read from the store.",
			`See "lmcaddy log", and whether PostgreSQL runs and can be reached from here.`)
	}
	var all []Finding
	for i := range o.Nodes {
		all = append(all, nodeFinding(&o.Nodes[i]))
	}
	if len(o.Nodes) == 1 {
		all = append(all, Finding{
			Status: Warning, Message: "No other node is in the cluster.",
			Advice: "Start others with the same store, each with the address where it is reached.",
		})
	}
	return all
}

func nodeFinding(n *resource.OverviewNode) Finding {
	switch {
	case n.Status == resource.RemoteUnreachable:
		return Finding{
			Status: Problem, Message: fmt.Sprintf("The node %s (%s) of the cluster can't be reached: %s.", n.Name, n.URL,
				strings.TrimRight(n.Error, ".")),
			Advice: "Start that server, or correct the address in its option cluster: the other nodes must reach a site with lm_api there.",
		}
	case n.Status == resource.NodeLate:
		return Finding{
			Status: Problem, Message: fmt.Sprintf("The node %s (%s) of the cluster can't reach the store.", n.Name, n.URL),
			Advice: "Look at the network between that server and PostgreSQL.",
		}
	case n.Status == resource.NodeLeaving:
		return Finding{Status: OK, Message: fmt.Sprintf("The node %s of the cluster is shutting down.", n.Name)}
	case n.Self:
		return Finding{Status: OK, Message: fmt.Sprintf("This server is the node %s of the cluster.", n.Name)}
	default:
		return Finding{Status: OK, Message: strings.TrimSpace(fmt.Sprintf("The node %s of the cluster is connected %s", n.Name,
			versionNote(n.Version))) + "."}
	}
}

func versionNote(version string) string {
	if version == "" {
		return ""
	}
	return "(" + version + ")"
}
