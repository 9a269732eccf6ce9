package node

import (
	"fmt"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// DefaultRounds is how many answers of a model a chat with MCP tools may take if the settings don't say.
const DefaultRounds = 25

// MCPSettings are the settings of chats in which the model calls tools of MCP servers.
type MCPSettings struct {
	// PrivateHosts are the hosts without a public address that a request's MCP server may have: names, addresses or
	// networks such as 10.0.0.0/8, each with a port or without.
	PrivateHosts []string

	CallTimeout time.Duration // how long a call of a tool may take; 0: one minute
	IdleTTL     time.Duration // a connection to a server is closed, and a server we started ended, after this time without use; 0: ten minutes
	MaxRounds   int           // how many answers of the model a chat may take, the last of them without tools; 0: DefaultRounds
}

// Validate returns an error if the settings are invalid. It names the option.
func (m MCPSettings) Validate() error {
	for _, host := range m.PrivateHosts {
		if err := servers.CheckPrivateHost(host); err != nil {
			return fmt.Errorf("mcp_private_hosts: %w", err)
		}
	}
	return nil
}

// ofPool returns the settings of the pool of servers.
func (m MCPSettings) ofPool() servers.Settings {
	return servers.Settings{PrivateHosts: m.PrivateHosts, CallTimeout: m.CallTimeout, IdleTTL: m.IdleTTL}
}

// warnIdleMCP warns about settings of MCP that have no effect.
func (n *Node) warnIdleMCP(s *Settings) {
	g, m := s.Gates, s.MCP
	namesServers := g.EphemeralMCP || g.RemoteMCP
	if len(m.PrivateHosts) > 0 && !namesServers {
		n.log.Warn("mcp_private_hosts has no effect: requests may not name MCP servers; allow ephemeral_mcp lets them")
	}
	if (m.CallTimeout > 0 || m.IdleTTL > 0 || m.MaxRounds > 0) && !namesServers && !g.PluginMCP {
		n.log.Warn("mcp_timeout, mcp_idle and mcp_max_rounds have no effect: no MCP server may be used; allow plugin_mcp or ephemeral_mcp lets chats use them")
	}
	if !g.PluginMCP {
		return
	}
	if plugins, err := n.MCP.Plugins(); err == nil && len(plugins) == 0 { // an error was logged
		n.log.Warn("allow plugin_mcp has no effect until a file lists MCP servers", "file", n.home.MCP())
	}
	tokens, err := n.Access.Tokens.List(n.ctx)
	if err == nil && !slices.ContainsFunc(tokens, func(t access.Token) bool { return t.Identity().May(access.ScopeMCPPlugin) }) {
		n.log.Info("no token has the scope mcp.plugin: only commands on this machine can use the servers of mcp.json; lmcaddy token create makes one")
	}
}
