// Package mcploop is reserved for the chat loop with MCP tools: rounds of one upstream request each, the calls that the
// model makes, and their results. It is still empty.
//
// It will use package supervisor, with a lease for each round and none while a tool runs, and package translate, whose
// events Round, CallResult, CallInvalid and ToolList are meant for it.
package mcploop
