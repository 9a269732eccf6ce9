// Package request defines the requests that engines serve, independent of the client's dialect: chats, text completions,
// embeddings and ranks. It also validates their fields, so that an engine receives nothing unchecked.
package request
