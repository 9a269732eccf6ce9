package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// checkRemotes checks whether the remotes can be reached. Only a running server knows their keys.
func checkRemotes(ctx context.Context, s *Subject) []Finding {
	if s.Config == nil || len(s.Config.Remotes) == 0 {
		return nil
	}
	if s.Server == nil {
		return ok("%d remotes are configured. Whether they can be reached shows once the server runs.", len(s.Config.Remotes))
	}
	var o resource.Overview
	if err := s.Server.Get(ctx, "/api/v1/ps", &o); err != nil {
		return one(Warning, fmt.Sprintf("What the remotes are doing isn't known: %v.", err), `See "lmcaddy log".`)
	}
	var all []Finding
	for i := range o.Remotes {
		all = append(all, remoteFinding(&o.Remotes[i]))
	}
	return all
}

func remoteFinding(r *resource.OverviewRemote) Finding {
	switch {
	case r.Status == resource.RemoteUnreachable:
		return Finding{
			Status: Problem, Message: fmt.Sprintf("The remote %s (%s) can't be reached: %s.", r.Name, r.URL,
				strings.TrimRight(r.Error, ".")),
			Advice: "Start that server, or correct the address or the key in the block of the remote. " +
				"Requests go to other places that have the model meanwhile.",
		}
	case r.Status == resource.RemoteConnecting:
		return Finding{
			Status: Warning, Message: fmt.Sprintf("The remote %s (%s) hasn't answered yet.", r.Name, r.URL),
			Advice: "Ask again in a few seconds.",
		}
	case r.Models == 0:
		return Finding{
			Status: Warning, Message: fmt.Sprintf("The remote %s (%s, %s) has no model that is used.", r.Name, r.Kind, r.URL),
			Advice: "Load a model there, or correct the patterns of models in the block of the remote.",
		}
	default:
		return Finding{Status: OK, Message: fmt.Sprintf("The remote %s (%s) is connected. Models: %d.", r.Name,
			strings.TrimSpace(r.Kind+" "+r.Version), r.Models)}
	}
}
