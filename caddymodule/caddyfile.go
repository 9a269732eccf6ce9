package caddymodule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/dustin/go-humanize"

	"github.com/lmcaddy/lmcaddy/api"
	"github.com/lmcaddy/lmcaddy/node"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("lm", parseApp)
	httpcaddyfile.RegisterHandlerDirective("lm_api", parseHandler)
	httpcaddyfile.RegisterHandlerDirective("lm_auth", parseAuth)
	// Each goes directly before metrics, which comes before reverse_proxy, so lm_auth, which is first, comes before lm_api and both of these.
	httpcaddyfile.RegisterDirectiveOrder("lm_auth", httpcaddyfile.Before, "metrics")
	httpcaddyfile.RegisterDirectiveOrder("lm_api", httpcaddyfile.Before, "metrics")
}

// parseApp reads the global option lm. If it is given more than once, later ones add to earlier ones.
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
//		max_downloads <n>
//		memory_budget <share>|<size>
//		gpu_memory [<device>] <share>|<size>   # may be repeated
//		queue <n>                         # 0: no bound
//		body_memory <size>
//		inspect <n>                       # 0: none
//		abandoned_loads finish|stop
//		stall_timeout <duration>
//		slow_client_timeout <duration>
//		prompt_cache shared|private
//		store sqlite|postgres <url> {
//			max_age <duration>            # 0: for ever
//			max_turns <n>                 # 0: any number
//			token_grace <duration>        # for tokens while the store can't be asked; 0: none
//		}
//		warm off|on|<size> {
//			size <size>
//			daily <size>
//			max_age <duration>            # 0: as long as there is room
//			save_after <duration>
//			min_tokens <n>
//		}
//		allow ephemeral_mcp|plugin_mcp|remote_mcp|raw_grammar...
//		mcp_private_hosts <host...>       # may be repeated
//		mcp_timeout <duration>
//		mcp_idle <duration>
//		mcp_max_rounds <n>
//		list_models loaded|all
//		unknown_model strict|single
//		unsupported_content refuse|omit
//		reasoning_field reasoning|reasoning_content
//		engine llama_server {
//			path <file>
//			parallel <n>
//			args <argument...>
//			sandbox on|off
//			sandbox_read <path...>        # may be repeated
//		}
//		engine mlx_lm {
//			path <file>                   # instead of command
//			command <word...>
//			parallel <n>
//			args <argument...>
//			sandbox off
//		}
//		model <key> {
//			alias <name...>
//			context_length <tokens>
//			parallel <n>
//			draft_model <key>
//			preload
//			pin
//			ttl <duration>
//			warm on|off
//			devices <name...>|none
//			gpu_layers <n>
//			args <argument...>
//		}
//		hub <url> {                       # may be repeated
//			token <token>
//			stall_timeout <duration>
//		}
//		remote <url> {                    # may be repeated
//			name <name>
//			key <key>
//			kind lmcaddy|vllm|sglang|lmstudio|ollama|llama_server|openai
//			models <pattern...>
//			parallel <n>
//			prefer <n>
//			vision <pattern...>
//			embeddings <pattern...>
//			rerankers <pattern...>
//			context_length <tokens>
//			stall_timeout <duration>
//			tls_ca <file>
//			tls_pin <sha256>
//			tls_insecure
//		}
//		cluster <url> {
//			tls_ca <file>
//			tls_insecure
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
	for _, group := range []func(*caddyfile.Dispenser) (bool, error){a.loadingOption, a.mcpOption} {
		if known, err := group(d); known {
			return err
		}
	}
	for _, option := range choices {
		if option.name == d.Val() {
			return oneOfArgs(d, option.of(a), option.values...)
		}
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
	case "engine":
		return a.engine(d, node.Engines())
	case "model":
		return a.model(d)
	case "allow":
		return a.allow(d)
	case "store":
		return a.storeOption(d)
	case "warm":
		return a.warmOption(d)
	case "preset":
		return a.preset(d)
	case "hub":
		return a.hub(d)
	case "remote":
		return a.remote(d)
	case "cluster":
		return a.cluster(d)
	default:
		return unknownOption(d, "lm", appOptions)
	}
}

func (a *App) model(d *caddyfile.Dispenser) error {
	var key string
	if err := oneArg(d, &key); err != nil {
		return err
	}
	key = strings.ToLower(key)
	m := a.Models[key]
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		var err error
		switch d.Val() {
		case "context_length":
			err = wholeNumber(d, 1, &m.ContextLength)
		case "parallel":
			err = wholeNumber(d, 1, &m.Parallel)
		case "alias":
			if err = someArgs(d, &m.Aliases); err == nil {
				err = wrap(d, a.checkAliases(key, m.Aliases))
			}
		case "draft_model":
			err = oneArg(d, &m.DraftModel)
		case "preload":
			err = loneWord(d, &m.Preload)
		case "pin":
			err = loneWord(d, &m.Pin)
		case "ttl":
			m.TTL = new(caddy.Duration)
			err = duration(d, m.TTL)
		case "warm":
			var on bool
			on, err = onOff(d)
			m.Warm = &on
		case "devices":
			err = someArgs(d, &m.Devices)
		case "gpu_layers":
			m.GPULayers = new(int)
			err = wholeNumber(d, 0, m.GPULayers)
		case "rpc":
			err = d.Err("rpc: this option is gone: pass the addresses to llama-server, as in: args --rpc 10.0.0.3:50052,10.0.0.4:50052")
		case "args":
			err = someArgs(d, &m.Args)
		default:
			err = unknownOption(d, "model "+key, modelOptions)
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
//		dialects native|v0|openai|anthropic|ollama...
//		max_body <size>
//		cors <origin...>                  # *: all
//		page on|off
//		greeting ollama
//	}
func parseHandler(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(Handler)
	h.Next() // lm_api
	if h.NextArg() {
		return nil, h.ArgErr()
	}
	for nesting := h.Nesting(); h.NextBlock(nesting); {
		switch h.Val() {
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
				if err := CheckCORS(origin); err != nil {
					return nil, h.WrapErr(err)
				}
			}
		case "dialects":
			if err := dialectArgs(h.Dispenser, &handler.Dialects); err != nil {
				return nil, err
			}
		case "page":
			on, err := onOff(h.Dispenser)
			if err != nil {
				return nil, err
			}
			handler.Page = &on
		case "greeting":
			if !h.Args(&handler.Greeting) {
				return nil, h.ArgErr()
			}
			if handler.Greeting != greetingOllama || h.NextArg() {
				return nil, h.Errf("greeting: the only one is %s", greetingOllama)
			}
		default:
			return nil, unknownOption(h.Dispenser, "lm_api", handlerOptions)
		}
	}
	return handler, nil
}

// dialectArgs reads the names of API families.
func dialectArgs(d *caddyfile.Dispenser, to *[]api.Family) error {
	var names []string
	if err := someArgs(d, &names); err != nil {
		return err
	}
	for _, name := range names {
		family := api.Family(name)
		if !slices.Contains(api.Families, family) {
			return d.Errf("dialects: %q is not one of: native, v0, openai, anthropic, ollama", name)
		}
		*to = append(*to, family)
	}
	return nil
}

// The options, as errors list them.
var (
	appOptions = []string{
		"abandoned_loads", "allow", "body_memory", "cluster", "engine", "gpu_memory", "home", "hosts", "hub", "idle_ttl", "inspect", "jit", "list_models", "max_downloads", "max_loaded",
		"mcp_idle", "mcp_max_rounds", "mcp_private_hosts", "mcp_timeout", "memory_budget", "model", "models_dir", "preset",
		"prompt_cache", "queue", "reasoning_field", "remote", "slow_client_timeout", "stall_timeout", "store", "unknown_model", "unsupported_content", "warm",
	}
	modelOptions   = []string{"alias", "args", "context_length", "devices", "draft_model", "gpu_layers", "parallel", "pin", "preload", "ttl", "warm"}
	clusterOptions = []string{"tls_ca", "tls_insecure"}
	hubOptions     = []string{"stall_timeout", "token"}
	remoteOptions  = []string{
		"context_length", "embeddings", "key", "kind", "models", "name", "parallel", "prefer", "rerankers", "stall_timeout", "tls_ca", "tls_insecure",
		"tls_pin", "vision",
	}
	storeOptions   = []string{"max_age", "max_turns", "token_grace"}
	warmOptions    = []string{"daily", "max_age", "min_tokens", "save_after", "size"}
	handlerOptions = []string{"cors", "dialects", "greeting", "max_body", "page"}
)

// unknownOption returns an error about the current word, with the options that exist.
func unknownOption(d *caddyfile.Dispenser, of string, known []string) error {
	return d.Errf("%s: unknown option %q; there are: %s", of, d.Val(), strings.Join(known, ", "))
}

// checkAliases returns an error if another model has one of the aliases.
func (a *App) checkAliases(key string, aliases []string) error {
	for other, m := range a.Models {
		for _, alias := range aliases {
			if other != key && slices.Contains(m.Aliases, alias) {
				return fmt.Errorf("alias %s: it is already used by the model %s", alias, other)
			}
		}
	}
	return nil
}

// oneArg reads exactly one argument.
func oneArg(d *caddyfile.Dispenser, to *string) error {
	if !d.Args(to) || d.NextArg() {
		return d.ArgErr()
	}
	return nil
}

// someArgs reads at least one argument, and appends them.
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
	return wrap(d, parseSize(word, value, to, most))
}

func parseSize(word, value string, to *int64, most uint64) error {
	n, err := humanize.ParseBytes(value)
	if err != nil || n < 1 || n >= most || isBare(value, n) {
		return fmt.Errorf("%s: %q is not a size between 1 byte and %s with its unit, such as 64MiB", word, value, humanize.IBytes(most))
	}
	*to = int64(n) //nolint:gosec // less than most
	return nil
}

// isBare reports whether a size lacks a unit that was surely meant: sizes here are never a few bytes.
func isBare(value string, bytes uint64) bool {
	return bytes < 1<<20 && strings.Trim(value, "0123456789") == ""
}

// Interface guards
var (
	_ caddyfile.Unmarshaler = (*App)(nil)
)
