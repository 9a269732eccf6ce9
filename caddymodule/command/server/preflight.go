package server

import (
	"cmp"
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
	"github.com/spf13/pflag"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/internal/home"
)

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

// SaysNothing reports whether `lmcaddy run` or `reload` has no configuration: neither in its arguments nor in the working folder.
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
