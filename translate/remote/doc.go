// Package remote is the wire of servers that this one reaches over the network: OpenAI-style servers such as vLLM and SGLang, another
// lmcaddy, LM Studio, Ollama and llama-server. They differ in the fields that they know and in what they can do besides chats; see [Kind].
package remote
