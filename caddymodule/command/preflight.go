package command

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

// preflight refuses to start a second server on the same home or on the same port. Caddy itself would take the admin
// socket of a running server away before it noticed, and would share the port with it, so that every other request went
// to the wrong one. So the lock on the home is taken first, and kept: of two that start at once only one goes on. A
// configuration that isn't known beforehand may be nil; what can be checked without it is.
func preflight(config []byte) error {
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
	if err := checkSocket(cmp.Or(gjson.GetBytes(config, "admin.listen").Str, caddy.DefaultAdminListen)); err != nil {
		return err
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

// checkSocket tells of a path that is too long for a socket, which the system calls an invalid argument.
func checkSocket(address string) error {
	parsed, err := caddy.ParseNetworkAddress(caddy.NewReplacer().ReplaceKnown(address, ""))
	if err != nil || !parsed.IsUnixNetwork() {
		return nil
	}
	path, _, _ := strings.Cut(parsed.Host, "|")
	if len(path) > home.MaxSocketPath {
		return fmt.Errorf("the path %s is too long for a socket, which may have %d bytes: choose a shorter LMCADDY_HOME, or another admin address", path, home.MaxSocketPath)
	}
	return nil
}

// checkUnused tells whether nobody listens on an address. Any other trouble with it is left for Caddy to tell.
func checkUnused(address string) error {
	parsed, err := caddy.ParseNetworkAddress(address)
	if err != nil || !strings.HasPrefix(parsed.Network, "tcp") {
		return nil
	}
	for i := range parsed.PortRangeSize() {
		at := parsed.JoinHostPort(i)
		l, err := net.Listen(parsed.Network, at)
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s is already in use by another program: stop that one, or choose another address", at)
		}
		if err == nil {
			_ = l.Close()
		}
	}
	return nil
}

// toRun is what the flags of `lmcaddy run` say that it is to run.
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
	for _, value := range []string{"pidfile", "pingback"} { // whose values are no flags
		flags.String(value, "", "")
	}
	return r, flags.Parse(args) == nil
}

// saysNothing tells whether neither the arguments of `lmcaddy run` nor the folder that it is run in say what to do.
func saysNothing(args []string) bool {
	flags, ok := runFlags(args)
	if !ok || flags.config != "" || flags.isResumed {
		return false
	}
	_, err := os.Stat("Caddyfile")
	return os.IsNotExist(err)
}

// configToRun is the configuration that `lmcaddy run` with these arguments will load, or what is wrong with its Caddyfile. It is
// nil where that isn't known beforehand: it comes from standard input, in another format, or with variables of a file.
func configToRun(args []string) ([]byte, error) {
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
		return nil, nil // it may be in another format, which is for Caddy to tell
	}
	return config, err
}
