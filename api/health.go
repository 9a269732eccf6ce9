package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
)

const healthPath = "/api/v1/health"

// health is GET /api/v1/health?ready=true: 200 while requests can be served, otherwise 503. With ready, it is 503 also until the models
// that are loaded at the start are there. Everybody may know the codes of what is wrong; administrators also learn the rest.
func (c *call) health() error {
	ready, err := c.asksReady()
	if err != nil {
		return err
	}
	troubles := c.node.Health(ready)
	if c.isExiting() {
		troubles = slices.Insert(troubles, 0, node.Trouble{Code: node.TroubleShuttingDown, Message: "The server is shutting down.", Fatal: true})
	}
	c.tellHealth(troubles, c.mayKnowDetails())
	return nil
}

// starting answers a request for the health before there is a node.
func (c *call) starting() {
	c.tellHealth([]node.Trouble{{Code: node.TroubleStarting, Fatal: true}}, false)
}

func (c *call) asksReady() (bool, error) {
	query := c.r.URL.Query()
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

func (c *call) isExiting() bool {
	select {
	case <-c.site.Exiting:
		return true
	default:
		return false
	}
}

// mayKnowDetails reports whether the request is an administrator's, or anybody's on a site without authentication. The endpoint is
// public, so a token hasn't been looked at yet, and one that isn't valid does no harm.
func (c *call) mayKnowDetails() bool {
	if c.who != node.Nobody {
		return c.who.May(node.ScopeAdmin)
	}
	if secret(c.r) == "" {
		return false
	}
	who, err := c.authenticate(nil, c.r.RemoteAddr)
	return err == nil && who.May(node.ScopeAdmin)
}

func (c *call) tellHealth(troubles []node.Trouble, detailed bool) {
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
	c.w.Header().Set("Cache-Control", "no-store")
	body, _ := json.Marshal(a) // strings always can be
	c.writeJSON(status, body)
}
