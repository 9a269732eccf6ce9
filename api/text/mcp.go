package text

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

type gate struct {
	name, closed string
	isOpen       func(node.Gates) bool
}

// gates are those of an endpoint: of the servers that requests name, and of those in mcp.json.
type gates struct{ named, Plugin []gate }

var (
	ephemeralGate = gate{
		"ephemeral_mcp", "Requests may not name MCP servers on this server", func(g node.Gates) bool { return g.EphemeralMCP },
	}
	pluginGate = gate{
		"plugin_mcp", "The servers of mcp.json may not be used through this server", func(g node.Gates) bool { return g.PluginMCP },
	}
	remoteGate = gate{"remote_mcp", "Responses may not use MCP servers on this server", func(g node.Gates) bool { return g.RemoteMCP }}

	// NativeGates are those of native chat.
	NativeGates = gates{[]gate{ephemeralGate}, []gate{pluginGate}}
	// ResponsesGates are those of the Responses API.
	ResponsesGates = gates{[]gate{remoteGate}, []gate{remoteGate, pluginGate}}
)

// AuthorizeServers refuses MCP servers that the settings or the request's token don't permit. Plugins need a token in the Authorization
// header, also on a site without authentication. The user of the home's socket needs none.
func AuthorizeServers(c *endpoint.Call, all []request.MCPServer, needed gates) error {
	named := 0
	for _, m := range all {
		through := needed.Plugin
		if m.Plugin == "" {
			through = needed.named
			named++
		}
		if err := CheckGates(c, through, m.Param); err != nil {
			return err
		}
	}
	if named > 0 {
		if err := c.Authorize(c.Identity, access.ScopeMCPEphemeral); err != nil {
			return err
		}
		c.Follow(c.Identity, access.ScopeMCPEphemeral)
	}
	if named == len(all) || c.Identity == access.Local {
		return nil
	}
	if endpoint.Bearer(c.Request) == "" {
		return endpoint.Unauthorized("Plugins need an API token in the Authorization header, but none was provided: send it as " +
			"'Authorization: Bearer $LM_API_TOKEN'. On the server's machine, `lmcaddy token create` makes one.")
	}
	_, err := c.AuthenticateFor(access.ScopeMCPPlugin)
	return err
}

// CheckGates returns an error if one of some gates is closed, about a field of the request.
func CheckGates(c *endpoint.Call, through []gate, param string) error {
	open := c.Node.Settings().Gates
	for _, g := range through {
		if !g.isOpen(open) {
			return translate.NewError(translate.KindForbidden, "gate_closed", param,
				g.closed+`: its Caddyfile must have "allow `+g.name+`" among the options of lm.`)
		}
	}
	return nil
}

// Toolbox connects to the servers of a request, and finds out their tools. The connections are given back when the request ends.
func Toolbox(ctx context.Context, c *endpoint.Call, all []request.MCPServer, caps request.Caps) (*mcploop.Toolbox, error) {
	if len(all) == 0 {
		return nil, nil
	}
	sources, connected := make([]mcploop.Source, len(all)), make([]mcpServer, len(all))
	for i := range all {
		m := &all[i]
		connected[i] = mcpServer{MCPServer: m, call: c}
		sources[i] = mcploop.Source{
			Server: &connected[i], Provider: m.Provider, Label: m.Name(), Param: m.Param, Restricted: m.Restricted, Allowed: m.Allowed,
			NeedsApproval: func() bool { return connected[i].session.NeedsApproval() },
			Explain:       func(err error) *translate.Error { return ServerError(c, m, err) },
		}
	}
	defer func() {
		for i := range connected {
			if session := connected[i].session; session != nil {
				c.Ends = append(c.Ends, session.Release)
			}
		}
	}()
	box, bad := mcploop.NewToolbox(ctx, sources, caps)
	switch {
	case bad == nil:
		return box, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		return nil, bad
	}
}

// ServerError is the error of a chat whose MCP server fails.
func ServerError(c *endpoint.Call, m *request.MCPServer, err error) *translate.Error {
	e := &translate.Error{Kind: translate.KindMCPFailed, Param: m.Param}
	if m.Plugin != "" {
		e.Kind = translate.KindPluginFailed
	}
	if unknown, ok := errors.AsType[*servers.UnknownError](err); ok {
		e.Code = "unknown_plugin"
		e.Message = `There is no MCP server "` + unknown.Label + `" in mcp.json. `
		if len(unknown.Known) == 0 {
			e.Message += "It has none at all."
		} else {
			e.Message += "There are: " + strings.Join(unknown.Known, ", ") + "."
		}
		return e
	}
	if failed, ok := errors.AsType[*servers.ConnectionError](err); ok {
		e.Message = failed.Message
		c.Site.Log.Info("an MCP server failed", "request", c.ID, "server", m.Name(), "error", failed.Message)
		return e
	}
	c.Site.Log.Error("an MCP server failed", "request", c.ID, "server", m.Name(), "error", err)
	e.Message = `The MCP server "` + m.Name() + `" failed. The server's log says more, under this request's id: ` + c.ID
	return e
}

// mcpServer is an MCP server of a request. Its calls are counted, and traced.
type mcpServer struct {
	*request.MCPServer

	call    *endpoint.Call
	session *servers.Session // nil before its tools are listed
}

func (s *mcpServer) Tools(ctx context.Context) (_ []mcploop.Tool, err error) {
	pool := s.call.Node.MCP
	if s.Plugin != "" {
		s.session, err = pool.Plugin(ctx, s.Plugin)
	} else {
		s.session, err = pool.Remote(ctx, endpoint.Payer(s.call), servers.Remote{Label: s.Label, URL: s.URL, Headers: s.Headers})
	}
	if err != nil {
		return nil, err
	}
	return s.session.Tools(ctx)
}

// Call calls a tool. A span has its name, but neither arguments nor results.
func (s *mcpServer) Call(ctx context.Context, tool string, args json.RawMessage) (mcploop.Result, error) {
	begun := time.Now()
	s.call.Ledger.Called()
	result, err := s.session.Call(ctx, tool, args)
	s.call.Ledger.Span(s.call.Request.Context(), "tool", begun, time.Now(), attribute.String("lm.mcp_server", s.Name()),
		attribute.String("gen_ai.tool.name", tool), attribute.Bool("lm.failed", err != nil || result.IsError))
	return result, err
}
