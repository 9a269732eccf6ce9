package manage

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// listMCP is GET /api/v1/mcp: the servers of mcp.json. It connects to none.
func listMCP(c *endpoint.Call) error {
	if err := mayListMCP(c); err != nil {
		return err
	}
	all, err := c.Node.MCP.Status()
	if err != nil {
		return unreadable()
	}
	list := resource.MCPServers{Servers: []resource.MCPServer{}}
	for i := range all {
		list.Servers = append(list.Servers, describeMCPServer(c, &all[i]))
	}
	return c.Answer(list)
}

// getMCP is GET /api/v1/mcp/{label}: a server with its tools, to which it connects if need be.
func getMCP(c *endpoint.Call) error {
	if err := mayListMCP(c); err != nil {
		return err
	}
	var tools []mcploop.Tool
	session, failed := c.Node.MCP.Plugin(c.Request.Context(), c.Param)
	if failed == nil {
		defer session.Release()
		tools, failed = session.Tools(c.Request.Context())
	}
	if unknown, ok := errors.AsType[*servers.UnknownError](failed); ok {
		e := text.ServerError(c, &request.MCPServer{Plugin: c.Param}, unknown)
		return &translate.Error{Kind: translate.KindPathNotFound, Code: "unknown_plugin", Message: e.Message}
	}
	if err := c.Request.Context().Err(); err != nil {
		return err
	}
	all, err := c.Node.MCP.Status()
	if err != nil {
		return unreadable()
	}
	i := slices.IndexFunc(all, func(s servers.Status) bool { return s.Label == c.Param })
	if i < 0 {
		i = slices.IndexFunc(all, func(s servers.Status) bool { return servers.Config{Label: s.Label}.ID() == c.Param })
	}
	if i < 0 { // it has just been removed
		return translate.NewError(translate.KindPathNotFound, "unknown_plugin", "",
			"There is no MCP server "+endpoint.Quoted(c.Param)+" in mcp.json.")
	}
	answer := resource.MCPServerTools{MCPServer: describeMCPServer(c, &all[i]), Tools: []resource.MCPTool{}}
	if failed != nil {
		answer.Status, answer.Error = "failed", text.ServerError(c, &request.MCPServer{Plugin: c.Param}, failed).Message
	}
	for _, t := range tools {
		if len(t.Schema) == 0 {
			t.Schema = json.RawMessage("{}")
		}
		answer.Tools = append(answer.Tools, resource.MCPTool{Name: t.Name, Title: t.Title, Description: t.Description, Schema: t.Schema})
	}
	return c.Answer(answer)
}

// mayListMCP refuses a request that may not use the servers of mcp.json. On a site without authentication, too, it needs a token.
func mayListMCP(c *endpoint.Call) error {
	if err := text.CheckGates(c, text.NativeGates.Plugin, ""); err != nil || c.Identity != nil {
		return err
	}
	who, err := c.AuthenticateFor(access.ScopeMCPPlugin)
	if err == nil {
		c.Identity = who
	}
	return err
}

func unreadable() *translate.Error {
	return &translate.Error{Kind: translate.KindPluginFailed, Message: "The file mcp.json can't be read; the server's log says why."}
}

func describeMCPServer(c *endpoint.Call, s *servers.Status) resource.MCPServer {
	r := resource.MCPServer{Label: s.Label, Transport: s.Transport, Status: "idle", Error: s.Failure, Sessions: s.Sessions}
	switch {
	case s.Connected:
		r.Status = "connected"
	case s.Failure != "":
		r.Status = "failed"
	}
	if s.Tools >= 0 {
		r.Tools = &s.Tools
	}
	if c.IsAdmin() {
		r.URL, r.Command = s.URL, s.Command
	}
	return r
}
