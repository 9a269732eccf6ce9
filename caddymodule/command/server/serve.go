// Package server has the commands about the server, its home folder, its tokens and its engines.
package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/spf13/cobra"
	"github.com/tidwall/sjson"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

const (
	defaultListen = "127.0.0.1:1234"
	ollamaListen  = "127.0.0.1:11434"
)

// DefineServe defines `lmcaddy serve`.
func DefineServe(cmd *cobra.Command) {
	cmd.Long = "Serves the models in $LMCADDY_HOME/models, and in additional folders, on one address, without TLS."
	cmd.Flags().StringP("listen", "l", defaultListen, "The address to serve on")
	cmd.Flags().Bool("ollama", false, "Also serve on "+ollamaListen+", where clients of Ollama look for it")
	cmd.Flags().StringArray("models-dir", nil, "An additional models folder (may be repeated)")
	cmd.Flags().String("list-models", "", "What GET /v1/models lists: "+strings.Join(config.Values("list_models"), " or ")+
		" (default loaded)")
	cmd.Flags().Bool("require-auth", false, "Require a token (lmcaddy token create)")
	cmd.Flags().StringArray("cors", nil, "An origin whose web pages may use the API, such as https://app.example (may be repeated)")
	cmd.Flags().StringArray("hosts", nil, "An additional name or address of this machine, such as server.lan (may be repeated)")
	cmd.Flags().StringArray("allow", nil, "A gate to open: "+strings.Join(config.Values("allow"), ", ")+" (may be repeated)")
	cmd.Flags().StringArray("mcp-private-hosts", nil,
		"A host without a public address that a request's MCP server may have, such as 127.0.0.1:3001 (may be repeated)")
	_ = cmd.RegisterFlagCompletionFunc("list-models", kit.CompleteOneOf(config.Values("list_models")...))
	_ = cmd.RegisterFlagCompletionFunc("allow", kit.CompleteOneOf(config.Values("allow")...)) // it fails only if there is no such flag
	cmd.Example = "  lmcaddy serve --list-models all\n  lmcaddy serve --listen 127.0.0.1:8080 --require-auth"
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return serve(caddycmd.Flags{FlagSet: cmd.Flags()}) }
}

// serve runs until the process is told to end.
func serve(flags caddycmd.Flags) error {
	caddy.TrapSignals()
	listen := flags.String("listen")
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return fmt.Errorf("--listen: %w: give an address and a port, such as %s", err, defaultListen)
	}
	app, err := appFlags(flags)
	if err != nil {
		return err
	}
	sites, err := siteFlags(flags)
	if err != nil {
		return err
	}
	all := serveConfig(app, sites)
	encoded, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := Preflight(encoded); err != nil {
		return err
	}
	if err := caddy.Run(all); err != nil {
		return err
	}
	select {}
}

// WriteServeConfig writes the configuration of `lmcaddy serve` without flags to a file, for Caddy's own commands.
func WriteServeConfig(dir home.Dir) (string, error) {
	if err := dir.Make(); err != nil {
		return "", err
	}
	file := filepath.Join(dir.Run(), "serve.json")
	return file, os.WriteFile(file, caddyconfig.JSON(defaultConfig(), nil), 0o600)
}

func appFlags(flags caddycmd.Flags) (*config.Settings, error) {
	var hosts []string
	app := &config.Settings{ListModels: flags.String("list-models")}
	for name, to := range map[string]*[]string{
		"models-dir": &app.ModelsDirs, "hosts": &hosts, "allow": &app.Allow,
		"mcp-private-hosts": &app.MCPPrivateHosts,
	} {
		given, err := flags.GetStringArray(name)
		if err != nil {
			return nil, err
		}
		*to = given
	}
	for i, dir := range app.ModelsDirs {
		app.ModelsDirs[i] = home.Absolute(dir)
	}
	app.Hosts = make([]config.Host, len(hosts))
	for i, host := range hosts {
		if err := app.Hosts[i].UnmarshalText([]byte(host)); err != nil {
			return nil, fmt.Errorf("--hosts: %w", err)
		}
	}
	return app, nil
}

func siteFlags(flags caddycmd.Flags) (sites, error) {
	origins, err := flags.GetStringArray("cors")
	if err != nil {
		return nil, err
	}
	for _, origin := range origins {
		if err := caddymodule.CheckCORS(origin); err != nil {
			return nil, fmt.Errorf("--%w", err)
		}
	}
	all := sites{"lmcaddy": newSite(flags.String("listen"), caddymodule.Handler{CORS: origins}, flags.Bool("require-auth"))}
	if flags.Bool("ollama") {
		name := "ollama"
		if flags.String("listen") == ollamaListen {
			name = "lmcaddy"
		}
		all[name] = newSite(ollamaListen, caddymodule.Handler{CORS: origins, Greeting: "ollama"}, flags.Bool("require-auth"))
	}
	return all, nil
}

// sites are plain HTTP servers, by name.
type sites map[string]*caddyhttp.Server

func newSite(listen string, handler caddymodule.Handler, needsToken bool) *caddyhttp.Server {
	var handlers []json.RawMessage
	if needsToken {
		handlers = append(handlers, caddyconfig.JSONModuleObject(caddymodule.Auth{}, "handler", "lm_auth", nil))
	}
	handlers = append(handlers, caddyconfig.JSONModuleObject(handler, "handler", "lm_api", nil))
	return &caddyhttp.Server{
		Listen:    []string{listen},
		AutoHTTPS: &caddyhttp.AutoHTTPSConfig{Disabled: true},
		Routes:    caddyhttp.RouteList{{HandlersRaw: handlers}},
	}
}

// chatty are loggers whose information is about certificates and their caches.
var chatty = []string{"tls", "pki", "http.auto_https"}

// logging returns what is logged unless a Caddyfile says it: on a terminal, where a server prints where it serves and what to type next, only
// what Caddy warns of, besides the information of lm; elsewhere all but what is chatty.
func logging() *caddy.Logging {
	others, some, level := "", chatty, "WARN"
	if terminal.Is(os.Stderr) {
		others, some, level = "WARN", []string{"lm"}, ""
	}
	return &caddy.Logging{Logs: map[string]*caddy.CustomLog{
		caddy.DefaultLoggerName: {BaseLog: caddy.BaseLog{Level: others}, Exclude: some},
		some[0]:                 {BaseLog: caddy.BaseLog{Level: level}, Include: some},
	}}
}

// Caddyfile adapts Caddyfiles as Caddy does, and adds what is to be logged to those without logs.
type Caddyfile struct{}

// Adapt implements [caddyconfig.Adapter].
func (Caddyfile) Adapt(body []byte, options map[string]any) ([]byte, []caddyconfig.Warning, error) {
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(body, options)
	if err == nil && !bytes.Contains(config, []byte(`"logs":`)) {
		config, err = sjson.SetBytes(config, "logging", logging())
	}
	return config, warnings, err
}

func serveConfig(app *config.Settings, all sites) *caddy.Config {
	site := caddyhttp.App{GracePeriod: caddy.Duration(caddymodule.DefaultGrace), Servers: all}
	noPersist := false
	return &caddy.Config{
		Logging: logging(),
		Admin:   &caddy.AdminConfig{Listen: caddy.DefaultAdminListen, Config: &caddy.ConfigSettings{Persist: &noPersist}},
		AppsRaw: caddy.ModuleMap{"http": caddyconfig.JSON(site, nil), "lm": caddyconfig.JSON(app, nil)},
	}
}

// Adapter is the name by which [Caddyfile] is registered.
const Adapter = "lmcaddy"

// Quietly adds arguments to those of `lmcaddy run`, `validate` or `reload` by which it adapts a Caddyfile with [Caddyfile].
func Quietly(args []string) []string {
	flags, _ := runFlags(args)
	name := strings.ToLower(filepath.Base(cmp.Or(flags.config, "Caddyfile")))
	isCaddyfile := strings.HasPrefix(name, "caddyfile") && filepath.Ext(name) != ".json" || strings.HasSuffix(name, ".caddyfile")
	if flags.isResumed || flags.adapter != "" || !isCaddyfile || SaysNothing(args) {
		return args
	}
	return append(args, "--config", cmp.Or(flags.config, "Caddyfile"), "--adapter", Adapter)
}
