package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// mcpServer is an MCP server whose tools a request wants to use.
type mcpServer struct {
	param    string // its place in the request
	plugin   string // the label of a server of mcp.json; empty: the request names the server
	label    string
	url      string
	headers  map[string]string
	provider translate.Provider // what clients are told of it

	restricted bool // to the allowed tools
	allowed    []string
}

// name is the server's label.
func (m *mcpServer) name() string { return cmp.Or(m.plugin, m.label) }

func mcpServersOf(all []native.Integration) []mcpServer {
	found := make([]mcpServer, len(all))
	for i := range all {
		n := &all[i]
		found[i] = mcpServer{
			param: n.Param, plugin: n.Plugin, label: n.Label, url: n.URL, headers: n.Headers, provider: n.Provider(),
			restricted: n.Restricted, allowed: n.Allowed,
		}
	}
	return found
}

// gate is a setting that MCP servers need.
type gate struct {
	name, closed string
	isOpen       func(node.Gates) bool
}

// gates are those of an endpoint: of the servers that requests name, and of those in mcp.json.
type gates struct{ named, plugin []gate }

var (
	ephemeralGate = gate{"ephemeral_mcp", "Requests may not name MCP servers on this server", func(g node.Gates) bool { return g.EphemeralMCP }}
	pluginGate    = gate{"plugin_mcp", "The servers of mcp.json may not be used through this server", func(g node.Gates) bool { return g.PluginMCP }}
	remoteGate    = gate{"remote_mcp", "Responses may not use MCP servers on this server", func(g node.Gates) bool { return g.RemoteMCP }}

	nativeGates    = gates{[]gate{ephemeralGate}, []gate{pluginGate}}
	responsesGates = gates{[]gate{remoteGate}, []gate{remoteGate, pluginGate}}
)

// mayUseServers refuses MCP servers that the settings or the request's token don't permit.
func mayUseServers(c *endpoint.Call, all []mcpServer, needed gates) error {
	isNamed := func(m mcpServer) bool { return m.plugin == "" }
	for _, m := range all {
		through := needed.plugin
		if isNamed(m) {
			through = needed.named
		}
		if err := passGates(c, through, m.param); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(all, isNamed) {
		if err := c.Authorize(c.Identity, node.ScopeMCPEphemeral); err != nil {
			return err
		}
		c.Follow(c.Identity, node.ScopeMCPEphemeral)
	}
	if slices.ContainsFunc(all, func(m mcpServer) bool { return !isNamed(m) }) {
		return mayUsePlugins(c)
	}
	return nil
}

// passGates returns an error if one of some gates is closed, about a field of the request.
func passGates(c *endpoint.Call, through []gate, param string) error {
	open := c.Node.Settings().Gates
	for _, g := range through {
		if !g.isOpen(open) {
			return &translate.Error{
				Kind: translate.KindForbidden, Code: "gate_closed", Param: param,
				Message: g.closed + `: its Caddyfile must have "allow ` + g.name + `" among the options of lm.`,
			}
		}
	}
	return nil
}

// mayUsePlugins refuses a request without a token for plugins in its Authorization header, also on a site without
// authentication. The user of the home's socket needs none.
func mayUsePlugins(c *endpoint.Call) error {
	if c.Identity == node.Local {
		return nil
	}
	if endpoint.Bearer(c.Request) == "" {
		return endpoint.Unauthorized("Plugins need an API token in the Authorization header, but none was provided: send it as " +
			"'Authorization: Bearer $LM_API_TOKEN'. On the server's machine, `lmcaddy token create` makes one.")
	}
	who, err := c.Authenticate(nil, c.Request.RemoteAddr)
	if err == nil {
		err = c.Authorize(who, node.ScopeMCPPlugin)
	}
	if err == nil {
		c.Follow(who, node.ScopeMCPPlugin)
	}
	return err
}

// toolbox connects to the servers of a request, and finds out their tools. The connections are given back when the request ends.
func toolbox(c *endpoint.Call, ctx context.Context, all []mcpServer, caps request.Caps) (*mcploop.Toolbox, error) {
	if len(all) == 0 {
		return nil, nil
	}
	sources := make([]mcploop.Source, len(all))
	failed := make([]error, len(all))
	var (
		connecting sync.WaitGroup
		mu         sync.Mutex
	)
	for i := range all {
		connecting.Go(func() {
			session, err := connect(c, ctx, &all[i])
			if err != nil {
				failed[i] = err
				return
			}
			mu.Lock()
			c.Ends = append(c.Ends, session.Release)
			mu.Unlock()
			sources[i] = mcploop.Source{
				Server: countedServer{session, c, all[i].name()}, Provider: all[i].provider, Label: all[i].name(), Param: all[i].param,
				Restricted: all[i].restricted, Allowed: all[i].allowed,
				Explain: func(err error) *translate.Error { return serverFailed(c, &all[i], err) },
			}
		})
	}
	connecting.Wait()
	for i, err := range failed {
		if err != nil {
			return nil, ifNotEnded(c, ctx, serverFailed(c, &all[i], err))
		}
	}
	box, bad := mcploop.NewToolbox(ctx, sources, caps)
	if bad != nil {
		return nil, ifNotEnded(c, ctx, bad)
	}
	return box, nil
}

// ifNotEnded returns the error, or that of the context if it has ended.
func ifNotEnded(c *endpoint.Call, ctx context.Context, e *translate.Error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return e
}

func connect(c *endpoint.Call, ctx context.Context, m *mcpServer) (*servers.Session, error) {
	if m.plugin != "" {
		return c.Node.MCP().Plugin(ctx, m.plugin)
	}
	return c.Node.MCP().Remote(ctx, c.Payer(), servers.Remote{Label: m.label, URL: m.url, Headers: m.headers})
}

// serverFailed is the error of a chat whose MCP server fails.
func serverFailed(c *endpoint.Call, m *mcpServer, err error) *translate.Error {
	e := &translate.Error{Kind: translate.KindMCPFailed, Param: m.param}
	if m.plugin != "" {
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
		c.Site.Log.Info("an MCP server failed", "request", c.ID, "server", m.name(), "error", failed.Message)
		return e
	}
	c.Site.Log.Error("an MCP server failed", "request", c.ID, "server", m.name(), "error", err)
	e.Message = `The MCP server "` + m.name() + `" failed. The server's log says more, under this request's id: ` + c.ID
	return e
}

// countedServer is an MCP server whose calls are counted, and traced.
type countedServer struct {
	mcploop.Server

	call  *endpoint.Call
	label string
}

// Call calls a tool. A span has its name, but neither arguments nor results.
func (s countedServer) Call(ctx context.Context, tool string, args json.RawMessage) (mcploop.Result, error) {
	begun := time.Now()
	s.call.Ledger.Called()
	result, err := s.Server.Call(ctx, tool, args)
	if s.call.Ledger.Tracer != nil {
		endpoint.Span(s.call, "tool", begun, time.Now(), attribute.String("lm.mcp_server", s.label), attribute.String("gen_ai.tool.name", tool),
			attribute.Bool("lm.failed", err != nil || result.IsError))
	}
	return result, err
}
