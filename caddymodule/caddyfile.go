package caddymodule

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/caddymodule/option"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("lm", parseApp)
	httpcaddyfile.RegisterHandlerDirective("lm_api", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next() // lm_api
		handler := new(Handler)
		return handler, option.Parse(h.Dispenser, "lm_api", handler)
	})
	httpcaddyfile.RegisterHandlerDirective("lm_auth", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next() // lm_auth
		auth := new(Auth)
		return auth, option.Parse(h.Dispenser, "lm_auth", auth)
	})
	// Each goes directly before metrics, which comes before reverse_proxy, so lm_auth, which is first, comes before lm_api and both of
	// these.
	httpcaddyfile.RegisterDirectiveOrder("lm_auth", httpcaddyfile.Before, "metrics")
	httpcaddyfile.RegisterDirectiveOrder("lm_api", httpcaddyfile.Before, "metrics")
}

// parseApp reads the global option lm. If it is given more than once, later ones add to earlier ones.
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	settings := new(config.Settings)
	if earlier, ok := existing.(httpcaddyfile.App); ok {
		if err := json.Unmarshal(earlier.Value, settings); err != nil {
			return nil, d.WrapErr(err)
		}
	}
	if err := settings.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "lm", Value: caddyconfig.JSON(settings, nil)}, nil
}
