package caddymodule

import (
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/node"
)

// mcp returns the settings of chats with MCP tools.
func (a *App) mcp(resolve func(string) string) node.MCPSettings {
	m := node.MCPSettings{
		CallTimeout: time.Duration(a.MCPTimeout),
		IdleTTL:     time.Duration(a.MCPIdle),
		MaxRounds:   a.MCPMaxRounds,
	}
	for _, host := range a.MCPPrivateHosts {
		m.PrivateHosts = append(m.PrivateHosts, resolve(host))
	}
	return m
}

// mcpOption reads the options about MCP tools. It returns false for any other.
func (a *App) mcpOption(d *caddyfile.Dispenser) (bool, error) {
	switch d.Val() {
	case "mcp_private_hosts":
		from := len(a.MCPPrivateHosts)
		if err := someArgs(d, &a.MCPPrivateHosts); err != nil {
			return true, err
		}
		return true, wrap(d, node.MCPSettings{PrivateHosts: a.MCPPrivateHosts[from:]}.Validate())
	case "mcp_timeout":
		return true, timeout(d, &a.MCPTimeout)
	case "mcp_idle":
		return true, timeout(d, &a.MCPIdle)
	case "mcp_max_rounds":
		return true, wholeNumber(d, 2, &a.MCPMaxRounds) // the last has no tools
	default:
		return false, nil
	}
}
