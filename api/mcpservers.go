package api

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
)

// listMCP is GET /api/v1/mcp: the servers of mcp.json. It connects to none.
func (c *call) listMCP() error {
	if err := c.mayListMCP(); err != nil {
		return err
	}
	all, err := c.node.MCP().Status()
	if err != nil {
		return unreadable()
	}
	list := resource.MCPServers{Servers: []resource.MCPServer{}}
	for i := range all {
		list.Servers = append(list.Servers, c.mcpServer(&all[i]))
	}
	return c.answer(list)
}

// getMCP is GET /api/v1/mcp/{label}: a server with its tools, to which it connects if need be.
func (c *call) getMCP() error {
	if err := c.mayListMCP(); err != nil {
		return err
	}
	tools, failed := c.toolsOf(c.param)
	if unknown, ok := errors.AsType[*servers.UnknownError](failed); ok {
		e := c.serverFailed(&mcpServer{plugin: c.param}, unknown)
		return &translate.Error{Kind: translate.KindPathNotFound, Code: "unknown_plugin", Message: e.Message}
	}
	if err := c.r.Context().Err(); err != nil {
		return err
	}
	all, err := c.node.MCP().Status()
	if err != nil {
		return unreadable()
	}
	i := slices.IndexFunc(all, func(s servers.Status) bool { return s.Label == c.param })
	if i < 0 {
		i = slices.IndexFunc(all, func(s servers.Status) bool { return servers.Config{Label: s.Label}.ID() == c.param })
	}
	if i < 0 { // it has just been removed
		return &translate.Error{Kind: translate.KindPathNotFound, Code: "unknown_plugin", Message: "There is no MCP server " + quoted(c.param) + " in mcp.json."}
	}
	answer := resource.MCPServerTools{MCPServer: c.mcpServer(&all[i]), Tools: []resource.MCPTool{}}
	if failed != nil {
		answer.Status, answer.Error = "failed", c.serverFailed(&mcpServer{plugin: c.param}, failed).Message
	}
	for _, t := range tools {
		answer.Tools = append(answer.Tools, resource.MCPTool{Name: t.Name, Title: t.Title, Description: t.Description, Schema: schemaOrEmpty(t.Schema)})
	}
	return c.answer(answer)
}

// toolsOf connects to a server of mcp.json, and lists its tools.
func (c *call) toolsOf(label string) ([]mcploop.Tool, error) {
	session, err := c.node.MCP().Plugin(c.r.Context(), label)
	if err != nil {
		return nil, err
	}
	defer session.Release()
	return session.Tools(c.r.Context())
}

func schemaOrEmpty(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 {
		return json.RawMessage("{}")
	}
	return schema
}

// mayListMCP refuses a request that may not use the servers of mcp.json. On a site without authentication, too, it needs a token.
func (c *call) mayListMCP() error {
	if err := c.passGates(nativeGates.plugin, ""); err != nil || c.who != nil {
		return err
	}
	who, err := c.authenticate(nil, c.r.RemoteAddr)
	if err == nil {
		err = c.authorize(who, node.ScopeMCPPlugin)
	}
	if err == nil {
		c.who = who
		c.follow(who, node.ScopeMCPPlugin)
	}
	return err
}

func unreadable() *translate.Error {
	return &translate.Error{Kind: translate.KindPluginFailed, Message: "The file mcp.json can't be read; the server's log says why."}
}

// mcpServer is a server as the client sees it.
func (c *call) mcpServer(s *servers.Status) resource.MCPServer {
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
	if c.isAdmin() {
		r.URL, r.Command = s.URL, s.Command
	}
	return r
}
