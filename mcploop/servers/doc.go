// Package servers connects to MCP servers: those of mcp.json, and those that a request names by URL.
//
// A [Pool] has one connection to each server. It is made when the server is first used, shared by all who use it, made again after
// it was lost, and closed when nobody has used it for a while. The goroutine that makes a connection owns it and closes it;
// [Pool.Close] waits for all of them.
//
// The protocol is spoken by github.com/mark3labs/mcp-go. What that library leaves open is done around it: everything that a
// server sends is bounded before the library reads it (bounded.go, events.go, lines.go), a request never leaves its server's
// origin or reaches an address that it may not (http.go, address.go), and tools and results are taken as the server sent them
// (tap.go), since the library's types lose what they don't know.
package servers
