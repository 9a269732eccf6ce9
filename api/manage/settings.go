package manage

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

type (
	// settingsAnswer is the part of the configuration that clients may want to know.
	settingsAnswer struct {
		Authentication bool       `json:"authentication"` // of this site
		Allow          node.Gates `json:"allow"`
		CORS           []string   `json:"cors"`
		MaxBody        int64      `json:"max_body_bytes"`
		JIT            bool       `json:"jit"`
		IdleTTL        float64    `json:"idle_ttl_seconds"` // 0: for ever
		MaxLoaded      int        `json:"max_loaded"`       // 0: as many as memory holds
		Queue          int        `json:"queue"`            // 0: no bound
		ListModels     string     `json:"list_models"`
		ReasoningField string     `json:"reasoning_field"`
		Version        string     `json:"version"` // of the server
		ID             string     `json:"id"`      // of its process

		Presets       []presetAnswer          `json:"presets"`
		Identity      *identityAnswer         `json:"identity"`                // null: the request has no token
		Configuration *resource.Configuration `json:"configuration,omitempty"` // for administrators
	}
	// identityAnswer is whose request it is, and what that identity may do.
	identityAnswer struct {
		Name   string         `json:"name"`
		Scopes []access.Scope `json:"scopes"`
		Models []string       `json:"models"` // patterns; none: all
	}
	// presetAnswer is a preset, by which requests may be completed.
	presetAnswer struct {
		Name   string      `json:"name"`
		Fields node.Preset `json:"fields,omitempty"` // for administrators
	}
)

// settings is GET /api/v1/settings.
func settings(c *endpoint.Call) error {
	s := c.Node.Settings()
	a := settingsAnswer{
		Authentication: c.Identity != nil, Version: c.Site.Version, ID: c.Node.ID(), MaxBody: c.Site.MaxBody,
		Allow: s.Gates,
		CORS:  append([]string{}, c.Site.CORS...), JIT: s.JIT, IdleTTL: s.IdleTTL.Seconds(), MaxLoaded: s.MaxLoaded, Queue: s.Queue,
		ListModels: "loaded", ReasoningField: string(cmp.Or(s.ReasoningField, openai.ReasoningPlain)), Presets: []presetAnswer{},
	}
	if s.ListAll {
		a.ListModels = "all"
	}
	who, err := presented(c)
	if err != nil {
		return err
	}
	if who != nil {
		a.Identity = &identityAnswer{who.Name, who.Scopes, append([]string{}, who.Models...)}
	}
	isAdmin := who != nil && who.May(access.ScopeAdmin)
	for _, name := range slices.Sorted(maps.Keys(s.Presets)) {
		preset := presetAnswer{Name: name}
		if isAdmin {
			preset.Fields = s.Presets[name]
		}
		a.Presets = append(a.Presets, preset)
	}
	if isAdmin && c.Site.Describe != nil {
		a.Configuration = new(c.Site.Describe())
	}
	return c.Answer(a)
}

// presented is the request's identity, or on a site without authentication that of its token; nil if it has none that is valid.
func presented(c *endpoint.Call) (*access.Identity, error) {
	if c.Identity != nil || endpoint.Secret(c.Request) == "" {
		return c.Identity, nil
	}
	who, err := c.Authenticate(nil, c.Request.RemoteAddr)
	if e, ok := errors.AsType[*translate.Error](err); ok && e.Kind == translate.KindUnauthorized {
		return nil, nil
	}
	return who, err
}

// rootCertificate is GET /api/v1/root.crt: devices that trust it trust this server's certificates.
func rootCertificate(c *endpoint.Call) error {
	var pem []byte
	if c.Site.RootCertificate != nil {
		var err error
		if pem, err = c.Site.RootCertificate(); err != nil {
			c.Site.Log.Debug("there is no root certificate to give", "request", c.ID, "error", err)
		}
	}
	if len(pem) == 0 {
		return translate.NewError(translate.KindPathNotFound, "no_root_certificate", "",
			"This server has no certificate authority of its own: its certificates are another's, or it doesn't use TLS.")
	}
	h := c.Writer.Header()
	h.Set("Content-Type", "application/x-x509-ca-cert")
	h.Set("Content-Disposition", `attachment; filename="lmcaddy-root.crt"`)
	h.Set("Content-Length", strconv.Itoa(len(pem)))
	c.Begun = true
	c.Writer.WriteHeader(http.StatusOK)
	if c.Request.Method != http.MethodHead {
		_, _ = c.Writer.Write(pem)
	}
	return nil
}

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
