// Package remote reaches servers of models over the network that this one hasn't started: another lmcaddy, vLLM, SGLang, LM Studio, Ollama,
// llama-server, or any other with an OpenAI-style API. A [Server] is the connection to one. A [Watch] finds out which models it has and
// whether it can be reached, in a goroutine of its own.
package remote
