package manage

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate"
)

// HealthPath is the path of the server's health, which is answered before there is a node.
const HealthPath = "/api/v1/health"

// health is GET /api/v1/health?ready=true: 200 while requests can be served, otherwise 503. With ready, it is 503 also until the models
// that are loaded at the start are there. Everybody may know the codes of what is wrong; administrators also learn the rest.
func health(c *endpoint.Call) error {
	ready, err := asksReady(c)
	if err != nil {
		return err
	}
	troubles := c.Node.Health(ready)
	if isExiting(c) {
		troubles = slices.Insert(troubles, 0, node.Trouble{Code: node.TroubleShuttingDown, Message: "The server is shutting down.", Fatal: true})
	}
	answerHealth(c, troubles, mayKnowDetails(c))
	return nil
}

// Starting answers a request for the health before there is a node.
func Starting(c *endpoint.Call) {
	answerHealth(c, []node.Trouble{{Code: node.TroubleStarting, Fatal: true}}, false)
}

func asksReady(c *endpoint.Call) (bool, error) {
	query := c.Request.URL.Query()
	given := query.Get("ready")
	if !query.Has("ready") || given == "" {
		return query.Has("ready"), nil
	}
	ready, err := strconv.ParseBool(given)
	if err != nil {
		return false, translate.Invalid("invalid_value", "ready", `"ready" must be true or false.`)
	}
	return ready, nil
}

func isExiting(c *endpoint.Call) bool {
	select {
	case <-c.Site.Exiting:
		return true
	default:
		return false
	}
}

// mayKnowDetails reports whether the request is an administrator's, or anybody's on a site without authentication. The endpoint is
// public, so a token hasn't been looked at yet, and one that isn't valid does no harm.
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
