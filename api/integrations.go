package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// mayIntegrate refuses integrations that the settings or the request's token don't permit.
func (c *call) mayIntegrate(all []native.Integration) error {
	plugin := slices.IndexFunc(all, func(i native.Integration) bool { return i.Plugin != "" })
	named := slices.IndexFunc(all, func(i native.Integration) bool { return i.Plugin == "" })
	gates := c.node.Settings().Gates
	switch {
	case plugin >= 0 && !gates.PluginMCP:
		return closedGate(all[plugin].Param, "plugin_mcp", "The servers of mcp.json may not be used through this server")
	case named >= 0 && !gates.EphemeralMCP:
		return closedGate(all[named].Param, "ephemeral_mcp", "Requests may not name MCP servers on this server")
	}
	if named >= 0 {
		if err := c.authorize(c.who, node.ScopeMCPEphemeral); err != nil {
			return err
		}
		c.follow(c.who, node.ScopeMCPEphemeral)
	}
	if plugin >= 0 {
		return c.mayUsePlugins()
	}
	return nil
}

func closedGate(param, gate, what string) error {
	return &translate.Error{
		Kind: translate.KindForbidden, Code: "gate_closed", Param: param,
		Message: what + `: its Caddyfile must have "allow ` + gate + `" among the options of lm.`,
	}
}

// mayUsePlugins refuses a request without a token for plugins in its Authorization header, also on a site without
// authentication. The user of the home's socket needs none.
func (c *call) mayUsePlugins() error {
	if c.who == node.Local {
		return nil
	}
	if bearer(c.r) == "" {
		return unauthorized("Plugins need an API token in the Authorization header, but none was provided: send it as " +
			"'Authorization: Bearer $LM_API_TOKEN'. On the server's machine, `lmcaddy token create` makes one.")
	}
	who, err := c.authenticate(nil, c.r.RemoteAddr)
	if err == nil {
		err = c.authorize(who, node.ScopeMCPPlugin)
	}
	if err == nil {
		c.follow(who, node.ScopeMCPPlugin)
	}
	return err
}

// toolbox connects to the servers of a chat, and finds out their tools. The connections are given back when the request ends.
func (c *call) toolbox(ctx context.Context, all []native.Integration, caps request.Caps) (*mcploop.Toolbox, error) {
	sources := make([]mcploop.Source, len(all))
	failed := make([]error, len(all))
	var (
		connecting sync.WaitGroup
		mu         sync.Mutex
	)
	for i := range all {
		connecting.Go(func() {
			session, err := c.connect(ctx, &all[i])
			if err != nil {
				failed[i] = err
				return
			}
			mu.Lock()
			c.ends = append(c.ends, session.Release)
			mu.Unlock()
			sources[i] = mcploop.Source{
				Server: session, Provider: all[i].Provider(), Label: all[i].Plugin + all[i].Label, Param: all[i].Param,
				Restricted: all[i].Restricted, Allowed: all[i].Allowed,
				Explain: func(err error) *translate.Error { return c.serverFailed(&all[i], err) },
			}
		})
	}
	connecting.Wait()
	for i, err := range failed {
		if err != nil {
			return nil, c.ifNotEnded(ctx, c.serverFailed(&all[i], err))
		}
	}
	box, bad := mcploop.NewToolbox(ctx, sources, caps, c.api.Log)
	if bad != nil {
		return nil, c.ifNotEnded(ctx, bad)
	}
	return box, nil
}

// ifNotEnded returns the error, or that of the context if it has ended.
func (c *call) ifNotEnded(ctx context.Context, e *translate.Error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return e
}

func (c *call) connect(ctx context.Context, i *native.Integration) (*servers.Session, error) {
	if i.Plugin != "" {
		return c.node.MCP().Plugin(ctx, i.Plugin)
	}
	return c.node.MCP().Remote(ctx, c.payer(), servers.Remote{Label: i.Label, URL: i.URL, Headers: i.Headers})
}

// serverFailed is the error of a chat whose MCP server fails.
func (c *call) serverFailed(i *native.Integration, err error) *translate.Error {
	e := &translate.Error{Kind: translate.KindMCPFailed, Param: i.Param}
	if i.Plugin != "" {
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
		c.api.Log.Info("an MCP server failed", "request", c.id, "server", i.Plugin+i.Label, "error", failed.Message)
		return e
	}
	c.api.Log.Error("an MCP server failed", "request", c.id, "server", i.Plugin+i.Label, "error", err)
	e.Message = `The MCP server "` + i.Plugin + i.Label + `" failed. The server's log says more, under this request's id: ` + c.id
	return e
}
