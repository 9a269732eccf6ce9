package manage

import (
	"cmp"
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
