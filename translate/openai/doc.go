// Package openai implements the dialect of the OpenAI-style endpoints: chat completions, text completions, embeddings and
// ranks. The API v0 has the same endpoints, with additional members in the answers.
package openai
