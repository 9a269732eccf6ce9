// Package anthropic is the dialect of the Messages API: POST /v1/messages and its count of tokens.
package anthropic
