package manage

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// HealthPath is the path of the server's health, which is answered before there is a node.
const HealthPath = "/api/v1/health"

// health is GET /api/v1/health?ready=true: 200 while requests can be served, otherwise 503. With ready, it is 503 also until the models
// that are loaded at the start are there. Everybody may know the codes of what is wrong; administrators also learn the rest.
func health(c *endpoint.Call) error {
	query := parametersOf(c)
	ready := query.bool("ready", query.Has("ready"))
	if query.err != nil {
		return query.err
	}
	troubles := c.Node.Health(ready)
	select {
	case <-c.Site.Exiting:
		stops := node.Trouble{Code: node.TroubleShuttingDown, Message: "The server is shutting down.", Fatal: true}
		troubles = slices.Insert(troubles, 0, stops)
	default:
	}
	answerHealth(c, troubles, mayKnowDetails(c))
	return nil
}

// Starting answers a request for the health before there is a node.
func Starting(c *endpoint.Call) {
	answerHealth(c, []node.Trouble{{Code: node.TroubleStarting, Fatal: true}}, false)
}

// mayKnowDetails reports whether a request for the public health is an administrator's, or without authentication anybody's.
func mayKnowDetails(c *endpoint.Call) bool {
	if c.Identity != access.Nobody {
		return c.Identity.May(access.ScopeAdmin)
	}
	if endpoint.Secret(c.Request) == "" {
		return false
	}
	who, err := c.Authenticate(nil, c.Request.RemoteAddr)
	return err == nil && who.May(access.ScopeAdmin)
}

func answerHealth(c *endpoint.Call, troubles []node.Trouble, detailed bool) {
	a, status := resource.Health{Status: "ok"}, http.StatusOK
	for _, t := range troubles {
		switch {
		case t.Fatal:
			a.Status, status = "failing", http.StatusServiceUnavailable
		case a.Status == "ok":
			a.Status = "degraded"
		}
		if !slices.Contains(a.Reasons, t.Code) {
			a.Reasons = append(a.Reasons, t.Code)
		}
		if detailed {
			a.Details = append(a.Details, resource.Trouble{Code: t.Code, Message: t.Message})
		}
	}
	c.Writer.Header().Set("Cache-Control", "no-store")
	body, _ := json.Marshal(a) // strings always can be
	c.WriteJSON(status, body)
}
