package caddymodule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node"
)

// TestMCP: what a Caddyfile says of MCP is what the node is told.
func TestMCP(t *testing.T) {
	t.Setenv("LMCADDY_HOME", t.TempDir())
	t.Setenv("TOOLS", "tools.example")
	for name, tt := range map[string]struct {
		options string
		want    node.MCPSettings
	}{
		"nothing": {"", node.MCPSettings{}},
		"everything": {
			"mcp_private_hosts tools.lan 10.0.0.0/8\nmcp_private_hosts [::1]:3001 {env.TOOLS}:3001\nmcp_timeout 90s\nmcp_idle 1h\nmcp_max_rounds 10",
			node.MCPSettings{
				Settings: servers.Settings{
					PrivateHosts: []string{"tools.lan", "10.0.0.0/8", "[::1]:3001", "tools.example:3001"}, CallTimeout: 90 * time.Second, IdleTTL: time.Hour,
				}, MaxRounds: 10,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, err := provisioned(t, "{\nlm {\n"+tt.options+"\n}\n}\n:1234 {\nlm_api\n}")
			if err != nil {
				t.Fatal(err)
			}
			app, err := appOf(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, app.settings.MCP); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMCP_JSON: a configuration in JSON is checked as a Caddyfile is.
func TestMCP_JSON(t *testing.T) {
	t.Parallel()
	for name, app := range map[string]*config.Settings{
		"mcp_private_hosts": {MCPPrivateHosts: []string{"http://tools.lan"}},
		"mcp_timeout":       {MCPTimeout: -1},
		"mcp_max_rounds":    {MCPMaxRounds: 1},
	} {
		if err := option.Check(app); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
