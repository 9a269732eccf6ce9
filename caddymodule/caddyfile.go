package caddymodule

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"

	"github.com/lmcaddy/lmcaddy/translate"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("lm", parseApp)
	httpcaddyfile.RegisterHandlerDirective("lm_api", parseHandler)
	httpcaddyfile.RegisterHandlerDirective("lm_auth", parseAuth)
	// Each goes directly before reverse_proxy, so lm_auth, which is first, comes before lm_api.
	httpcaddyfile.RegisterDirectiveOrder("lm_auth", httpcaddyfile.Before, "reverse_proxy")
	httpcaddyfile.RegisterDirectiveOrder("lm_api", httpcaddyfile.Before, "reverse_proxy")
}

// parseApp reads the global option lm. When it stands more than once, the later adds to the earlier.
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	app := new(App)
	if earlier, ok := existing.(httpcaddyfile.App); ok {
		if err := json.Unmarshal(earlier.Value, app); err != nil {
			return nil, d.WrapErr(err)
		}
	}
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "lm", Value: caddyconfig.JSON(app, nil)}, nil
}

// UnmarshalCaddyfile reads
//
//	lm {
//		home <folder>
//		models_dir <folder>               # may be repeated
//		hosts <name or address...>        # of this machine, beside its own
//		jit on|off
//		idle_ttl <duration>               # 0: never
//		max_loaded <n>                    # 0: as many as memory holds
//		memory_budget <share>|<size>
//		queue <n>                         # 0: no bound
//		body_memory <size>
//		abandoned_loads finish|stop
//		stall_timeout <duration>
//		slow_client_timeout <duration>
//		prompt_cache shared|private
//		store sqlite|postgres <url> {
//			max_age <duration>            # 0: for ever
//			max_turns <n>                 # 0: any number
//			token_grace <duration>        # for tokens while the store can't be asked; 0: none
//		}
//		allow ephemeral_mcp|plugin_mcp|remote_mcp...
//		list_models loaded|all
//		reasoning_field reasoning|reasoning_content
//		engine llama_server {
//			path <file>
//			parallel <n>
//			args <argument...>
//			sandbox on|off
//			sandbox_read <path...>        # may be repeated
//		}
//		model <key> {
//			alias <name...>
//			context_length <tokens>
//			parallel <n>
//			draft_model <key>
//			preload
//			pin
//			ttl <duration>
//			args <argument...>
//		}
//		hub <url> {                       # may be repeated
//			token <token>
//			stall_timeout <duration>
//		}
//		preset <name> {
//			system_prompt <text>
//			<field> <value...>
//		}
//	}
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // lm
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := a.option(d); err != nil {
			return err
		}
	}
	return nil
}

func (a *App) option(d *caddyfile.Dispenser) error {
	if known, err := a.loadingOption(d); known {
		return err
	}
	switch word := d.Val(); word {
	case "home":
		return oneArg(d, &a.Home)
	case "models_dir":
		var dir string
		err := oneArg(d, &dir)
		a.ModelsDirs = append(a.ModelsDirs, dir)
		return err
	case "hosts":
		return hostArgs(d, &a.Hosts)
	case "jit":
		on, err := onOff(d)
		a.JIT = &on
		return err
	case "list_models":
		return oneOfArgs(d, &a.ListModels, "loaded", "all")
	case "reasoning_field":
		return oneOfArgs(d, &a.ReasoningField, string(translate.ReasoningPlain), string(translate.ReasoningContent))
	case "engine":
		return a.engine(d)
	case "model":
		return a.model(d)
	case "allow":
		return a.allow(d)
	case "store":
		return a.storeOption(d)
	case "preset":
		return a.preset(d)
	case "hub":
		return a.hub(d)
	default:
		return d.Errf("lm: unknown option %q", word)
	}
}

func (a *App) engine(d *caddyfile.Dispenser) error {
	var kind string
	if err := oneOfArgs(d, &kind, "llama_server"); err != nil {
		return err
	}
	e := a.Engines.LlamaServer
	if e == nil {
		e = new(Engine)
		a.Engines.LlamaServer = e
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch word := d.Val(); word {
		case "path":
			err = oneArg(d, &e.Path)
		case "parallel":
			err = wholeNumber(d, 1, &e.Parallel)
		case "args":
			err = someArgs(d, &e.Args)
		case "sandbox":
			var on bool
			on, err = onOff(d)
			e.Sandbox = &on
		case "sandbox_read":
			err = someArgs(d, &e.SandboxRead)
		default:
			err = d.Errf("engine %s: unknown option %q", kind, word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *App) model(d *caddyfile.Dispenser) error {
	var key string
	if err := oneArg(d, &key); err != nil {
		return err
	}
	m := a.Models[key]
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch word := d.Val(); word {
		case "context_length":
			err = wholeNumber(d, 1, &m.ContextLength)
		case "parallel":
			err = wholeNumber(d, 1, &m.Parallel)
		case "alias":
			err = someArgs(d, &m.Aliases)
		case "draft_model":
			err = oneArg(d, &m.DraftModel)
		case "preload":
			err = loneWord(d, &m.Preload)
		case "pin":
			err = loneWord(d, &m.Pin)
		case "ttl":
			m.TTL = new(caddy.Duration)
			err = duration(d, m.TTL)
		case "args":
			err = someArgs(d, &m.Args)
		default:
			err = d.Errf("model %s: unknown option %q", key, word)
		}
		if err != nil {
			return err
		}
	}
	if a.Models == nil {
		a.Models = map[string]Model{}
	}
	a.Models[key] = m
	return nil
}

// parseHandler reads
//
//	lm_api {
//		max_body <size>
//		cors <origin...>                  # *: all
//	}
func parseHandler(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	h.Next() // lm_api
	if h.NextArg() {
		return nil, h.ArgErr()
	}
	for nesting := h.Nesting(); h.NextBlock(nesting); {
		switch word := h.Val(); word {
		case "max_body":
			if err := size(h.Dispenser, &handler.MaxBody, mostBody); err != nil {
				return nil, err
			}
		case "cors":
			from := len(handler.CORS)
			if err := someArgs(h.Dispenser, &handler.CORS); err != nil {
				return nil, err
			}
			for _, origin := range handler.CORS[from:] {
				if err := checkCORS(origin); err != nil {
					return nil, h.WrapErr(err)
				}
			}
		default:
			return nil, h.Errf("lm_api: unknown option %q", word)
		}
	}
	return handler, nil
}

// oneArg reads exactly one argument.
func oneArg(d *caddyfile.Dispenser, to *string) error {
	if !d.Args(to) || d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

// someArgs reads at least one argument, and adds them to those before.
func someArgs(d *caddyfile.Dispenser, to *[]string) error {
	args := d.RemainingArgs()
	if len(args) == 0 {
		return d.ArgErr()
	}
	*to = append(*to, args...)
	return nil
}

func oneOfArgs(d *caddyfile.Dispenser, to *string, allowed ...string) error {
	word := d.Val()
	if err := oneArg(d, to); err != nil {
		return err
	}
	if !slices.Contains(allowed, *to) {
		return d.Errf("%s: %q is not one of: %s", word, *to, strings.Join(allowed, ", "))
	}
	return nil
}

func onOff(d *caddyfile.Dispenser) (bool, error) {
	var value string
	err := oneOfArgs(d, &value, "on", "off")
	return value == "on", err
}

// mostBody bounds the bodies that a site may take, in bytes.
const mostBody = 2 << 30

func size(d *caddyfile.Dispenser, to *int64, most uint64) error {
	word, value := d.Val(), ""
	if err := oneArg(d, &value); err != nil {
		return err
	}
	n, err := humanize.ParseBytes(value)
	if err != nil || n < 1 || n >= most {
		return d.Errf("%s: %q is not a size between 1 byte and %s, such as 64MiB", word, value, humanize.IBytes(most))
	}
	*to = int64(n) //nolint:gosec // less than most
	return nil
}

// Interface guards
var (
	_ caddyfile.Unmarshaler = (*App)(nil)
)
