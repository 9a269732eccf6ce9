package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// others asks the running server, which alone knows them, for the remotes and the nodes of the cluster.
func (s *Subject) others(ctx context.Context, found *findings, what string) (o resource.Overview, ok bool) {
	if s.Server == nil {
		found.ok("The configuration has %s. Whether they can be reached shows once the server runs.", what)
		return o, false
	}
	if err := s.Server.Get(ctx, "/api/v1/ps", &o); err != nil {
		found.warn(`See "lmcaddy log".`, "Whether %s can be reached isn't known: %v.", what, err)
		return o, false
	}
	return o, true
}

func checkRemotes(ctx context.Context, s *Subject) (found findings) {
	if s.Config == nil || len(s.Config.Remotes) == 0 {
		return nil
	}
	o, _ := s.others(ctx, &found, count(len(s.Config.Remotes), "remote", "remotes"))
	for i := range o.Remotes {
		switch r := &o.Remotes[i]; {
		case r.Status == resource.RemoteUnreachable:
			found.problem("Start that server, or correct the address or the key in the block of the remote. "+
				"Requests go to other places that have the model meanwhile.",
				"The remote %s (%s) can't be reached: %s.", r.Name, r.URL, strings.TrimRight(r.Error, "."))
		case r.Status == resource.RemoteConnecting:
			found.warn("Ask again in a few seconds.", "The remote %s (%s) hasn't answered yet.", r.Name, r.URL)
		case r.Models == 0:
			found.warn("Load a model there, or correct the patterns of models in the block of the remote.",
				"The remote %s (%s, %s) has no model that is used.", r.Name, r.Kind, r.URL)
		default:
			found.ok("The remote %s (%s) is connected. Models: %d.", r.Name, strings.TrimSpace(r.Kind+" "+r.Version), r.Models)
		}
	}
	return found
}

// checkCluster checks whether the nodes of the cluster can be reached.
func checkCluster(ctx context.Context, s *Subject) (found findings) {
	isCluster := func(o resource.Setting) bool { return o.Name == "cluster" && o.Source == resource.FromFile }
	if s.Config == nil || !slices.ContainsFunc(s.Config.Settings, isCluster) {
		return nil
	}
	o, ok := s.others(ctx, &found, "the nodes of a cluster")
	switch {
	case ok && len(o.Nodes) == 0:
		found.problem(`See "lmcaddy log", and whether PostgreSQL runs and can be reached from here.`,
			"The nodes of the cluster can't be read from the store.")
	case len(o.Nodes) == 1:
		found.warn("Start others with the same store, each with the address where it is reached.", "No other node is in the cluster.")
	}
	for i := range o.Nodes {
		switch n := &o.Nodes[i]; {
		case n.Status == resource.RemoteUnreachable:
			found.problem("Start that server, or correct the address in its option cluster: "+
				"the other nodes must reach a site with lm_api there.",
				"The node %s (%s) of the cluster can't be reached: %s.", n.Name, n.URL, strings.TrimRight(n.Error, "."))
		case n.Status == resource.NodeLate:
			found.problem("Look at the network between that server and PostgreSQL.",
				"The node %s (%s) of the cluster can't reach the store.", n.Name, n.URL)
		case n.Self:
			found.ok("This server is the node %s of the cluster.", n.Name)
		default:
			found.ok("The node %s of the cluster is %s.", n.Name, n.Status)
		}
	}
	return found
}
