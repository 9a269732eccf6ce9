// Package openai is the dialect of the OpenAI-style endpoints and of the API v0, which adds to their answers: chat completions,
// text completions, embeddings and ranks.
package openai
