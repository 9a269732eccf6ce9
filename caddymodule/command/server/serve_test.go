package server

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"
)

// TestServe_Flags: each flag has its option in the configuration.
func TestServe_Flags(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags []string
		want  string
	}{
		"none": {nil, `{}`},
		"all": {
			[]string{
				"--models-dir", "/srv/models", "--hosts", "Server.LAN", "--allow", "plugin_mcp", "--allow", "ephemeral_mcp",
				"--mcp-private-hosts", "127.0.0.1:3001", "--mcp-private-hosts", "tools.lan",
			},
			`{"models_dirs":["/srv/models"],"hosts":["server.lan"],"allow":["plugin_mcp","ephemeral_mcp"],"mcp_private_hosts":["127.0.0.1:3001","tools.lan"]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := &cobra.Command{Use: "serve", SilenceUsage: true}
			DefineServe(cmd)
			if err := cmd.ParseFlags(tt.flags); err != nil {
				t.Fatal(err)
			}
			app, err := appFlags(caddycmd.Flags{FlagSet: cmd.Flags()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(caddyconfig.JSON(app, nil))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A Caddyfile's server logs less of what Caddy does, unless the Caddyfile says what is logged.
func TestCaddyfile_Logs(t *testing.T) {
	t.Parallel()
	for caddyfile, want := range map[string]string{
		"http://:1":                     `["tls","pki","http.auto_https"]`,
		"{\n debug\n}\nhttp://:1":       "",
		"http://:1 {\n log\n}":          "",
		"{\n log {\n level WARN\n }\n}": "",
	} {
		adapted, _, err := Caddyfile{}.Adapt([]byte(caddyfile), nil)
		if got := gjson.GetBytes(adapted, "logging.logs.default.exclude").Raw; err != nil || got != want {
			t.Errorf("%s: %v: %s", caddyfile, err, adapted)
		}
	}
	for args, want := range map[string]string{
		"":                           "",
		"--watch -c a.caddyfile":     "--watch -c a.caddyfile --config a.caddyfile --adapter lmcaddy",
		"--config a.json":            "--config a.json",
		"--config x --adapter nginx": "--config x --adapter nginx",
		"--resume":                   "--resume",
		"--config -":                 "--config -",
	} {
		if got := strings.Join(Quietly(strings.Fields(args)), " "); got != want {
			t.Errorf("%q becomes %q", args, got)
		}
	}
}
