// Package mcploop lets a model call the tools of MCP servers: it asks the model, makes the calls that the model wants, gives
// their results back, and asks again, until the model has nothing to call. [Run] tells what happens as events.
//
// The servers are those of package servers, below. They follow the Model Context Protocol, https://modelcontextprotocol.io.
package mcploop
