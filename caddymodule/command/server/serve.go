// Package server has the commands about the server, its home folder, its tokens and its engines.
package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tidwall/gjson"
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

// Preflight refuses to start a second server on the same home or on the same port. Caddy itself would replace the admin socket of a running
// server, and share its port, so that every other request went to the wrong server. So the lock on the home is taken first, and held: of
// two servers that start at once, only one goes on. A nil configuration is one that isn't known beforehand; then only the home is checked.
func Preflight(config []byte) error {
	dir, err := home.FromEnvironment()
	if set := gjson.GetBytes(config, "apps.lm.home").Str; set != "" {
		dir, err = home.Abs(home.Expand(caddy.NewReplacer().ReplaceKnown(set, "")))
	}
	if err != nil {
		return err
	}
	if dir, err = dir.Real(); err != nil {
		return err
	}
	if err := caddymodule.Reserve(dir); err != nil {
		return err
	}
	return checkAddresses(config)
}

// checkAddresses returns an error if an address on which a configuration listens can't be used, or is in use.
func checkAddresses(config []byte) error {
	// Of a path that is too long for a socket, the system says that it is an invalid argument.
	admin := cmp.Or(gjson.GetBytes(config, "admin.listen").Str, caddy.DefaultAdminListen)
	if parsed, err := caddy.ParseNetworkAddress(caddy.NewReplacer().ReplaceKnown(admin, "")); err == nil && parsed.IsUnixNetwork() {
		if path, _, _ := strings.Cut(parsed.Host, "|"); len(path) > home.MaxSocketPath {
			return fmt.Errorf("the path %s is too long for a socket, which may have %d bytes: choose a shorter LMCADDY_HOME, "+
				"or another admin address", path, home.MaxSocketPath)
		}
	}
	var addresses []string
	gjson.GetBytes(config, "apps.http.servers").ForEach(func(_, server gjson.Result) bool {
		for _, address := range server.Get("listen").Array() {
			addresses = append(addresses, address.Str)
		}
		return true
	})
	for _, address := range addresses {
		if err := checkUnused(address); err != nil {
			return err
		}
	}
	return nil
}

// checkUnused returns an error if an address is in use, or if this user may not listen on it. Any other error is left to Caddy.
func checkUnused(address string) error {
	parsed, err := caddy.ParseNetworkAddress(address)
	if err != nil || !strings.HasPrefix(parsed.Network, "tcp") {
		return nil
	}
	for i := range parsed.PortRangeSize() {
		at := parsed.JoinHostPort(i)
		l, err := net.Listen(parsed.Network, at)
		if refused := explainListen(at, err); refused != nil {
			return refused
		}
		if err == nil {
			_ = l.Close()
		}
	}
	return nil
}

// explainListen says why listening on an address failed, and what to do; nil: it didn't, or Caddy says it.
func explainListen(at string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && at == ollamaListen:
		return fmt.Errorf("%s, the address of Ollama, is already in use: stop the program that uses it, "+
			"or serve without it (without --ollama)", at)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is already in use by another program: stop that program, or choose another address", at)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("this user may not listen on %s: choose a port above 1023, "+
			"or use \"sudo lmcaddy service install --system\", whose service may", at)
	}
	return nil
}

// toRun is the flags of `lmcaddy run` that say what it runs.
type toRun struct {
	config, adapter, envfile string
	isResumed                bool
}

func runFlags(args []string) (r toRun, ok bool) {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	flags.StringVarP(&r.config, "config", "c", "", "")
	flags.StringVarP(&r.adapter, "adapter", "a", "", "")
	flags.StringVar(&r.envfile, "envfile", "", "")
	flags.BoolVarP(&r.isResumed, "resume", "r", false, "")
	for _, value := range []string{"pidfile", "pingback"} { // so that their values aren't taken for arguments
		flags.String(value, "", "")
	}
	return r, flags.Parse(args) == nil
}

// SaysNothing reports whether `lmcaddy run` has no configuration: neither in its arguments nor in the working folder.
func SaysNothing(args []string) bool {
	flags, ok := runFlags(args)
	if !ok || flags.config != "" || flags.isResumed {
		return false
	}
	_, err := os.Stat("Caddyfile")
	return os.IsNotExist(err)
}

// ConfigFile returns the file that a command line runs; empty: none, or it isn't a file.
func ConfigFile(args []string) string {
	if len(args) == 0 || args[0] != "run" || SaysNothing(args[1:]) {
		return ""
	}
	flags, ok := runFlags(args[1:])
	switch {
	case !ok || flags.config == "-":
		return ""
	case flags.isResumed:
		if _, err := os.Stat(caddy.ConfigAutosavePath); err == nil {
			return caddy.ConfigAutosavePath
		}
	}
	return home.Absolute(cmp.Or(flags.config, "Caddyfile"))
}

// Adapter is the name by which [Caddyfile] is registered.
const Adapter = "lmcaddy"

// Quietly adds arguments to those of `lmcaddy run` or `validate` by which it adapts a Caddyfile with [Caddyfile].
func Quietly(args []string) []string {
	flags, _ := runFlags(args)
	name := strings.ToLower(filepath.Base(cmp.Or(flags.config, "Caddyfile")))
	isCaddyfile := strings.HasPrefix(name, "caddyfile") && filepath.Ext(name) != ".json" || strings.HasSuffix(name, ".caddyfile")
	if flags.isResumed || flags.adapter != "" || !isCaddyfile || SaysNothing(args) {
		return args
	}
	return append(args, "--config", cmp.Or(flags.config, "Caddyfile"), "--adapter", Adapter)
}

// ConfigToRun returns the configuration that `lmcaddy run` with these arguments will load, or the error in its Caddyfile. It is
// nil if that isn't known beforehand: it comes from standard input, is in another format, or uses an envfile.
func ConfigToRun(args []string) ([]byte, error) {
	flags, ok := runFlags(args)
	if !ok || flags.config == "-" || flags.envfile != "" || flags.adapter != "" && flags.adapter != "caddyfile" {
		return nil, nil
	}
	if flags.isResumed {
		if saved, err := os.ReadFile(caddy.ConfigAutosavePath); err == nil {
			return saved, nil
		}
	}
	file := cmp.Or(flags.config, "Caddyfile")
	config, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && flags.config == "" {
		return nil, nil
	}
	if err != nil || filepath.Ext(file) == ".json" {
		return config, err
	}
	config, _, err = caddyconfig.GetAdapter("caddyfile").Adapt(config, map[string]any{"filename": file})
	name := strings.ToLower(filepath.Base(file))
	if err != nil && flags.adapter == "" && !strings.HasPrefix(name, "caddyfile") && !strings.HasSuffix(name, ".caddyfile") {
		return nil, nil // it may be in another format; Caddy decides
	}
	return config, err
}
