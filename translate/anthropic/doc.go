// Package anthropic implements the dialect of the Messages API: POST /v1/messages and POST /v1/messages/count_tokens.
package anthropic
