// Package mcploop is the place of the chat loop with MCP tools: rounds of one upstream request each, the calls that the
// model makes, and the results that it is given. It is empty so far.
//
// It will stand on package supervisor, taking a lease for each round and none while a tool runs, and on package translate,
// whose events Round, CallResult, CallInvalid and ToolList are its own.
package mcploop
