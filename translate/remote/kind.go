// Package remote is the wire of servers that this one reaches over the network: OpenAI-style servers such as vLLM and SGLang, another
// lmcaddy, LM Studio, Ollama and llama-server. They differ in the fields that they know and in what they can do besides chats; see [Kind].
package remote

import (
	"slices"

	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Kind is a kind of server.
type Kind string

// The kinds. OpenAI is any other server with an OpenAI-style API.
const (
	Lmcaddy     Kind = "lmcaddy"
	VLLM        Kind = "vllm"
	SGLang      Kind = "sglang"
	LMStudio    Kind = "lmstudio"
	Ollama      Kind = "ollama"
	LlamaServer Kind = "llama_server"
	OpenAI      Kind = "openai"
)

// Kinds lists all kinds.
var Kinds = []Kind{Lmcaddy, VLLM, SGLang, LMStudio, Ollama, LlamaServer, OpenAI}

type traits struct {
	chat     []string // fields of chats beside the standard ones
	text     []string // fields of text completions beside the standard ones
	own      bool     // it knows the fields that llama-server has by itself
	strict   bool     // it refuses what it doesn't know
	ids      bool     // prompts and inputs may be token ids
	renames  bool     // it calls repeat_penalty repetition_penalty
	progress bool     // it reports the progress of prompts if asked to
	writes   bool     // it can't hold an answer to a format and look for calls in it
}

var kinds = map[Kind]traits{
	Lmcaddy: {
		chat: []string{"top_k", "min_p", "repeat_penalty", "chat_template_kwargs", "thinking_budget_tokens"},
		text: []string{"top_k", "min_p", "repeat_penalty"}, own: true, ids: true,
	},
	LlamaServer: {
		chat: []string{"top_k", "min_p", "repeat_penalty", "chat_template_kwargs", "thinking_budget_tokens"},
		text: []string{"top_k", "min_p", "repeat_penalty"}, own: true, ids: true, progress: true, writes: true,
	},
	VLLM:     {chat: []string{"top_k", "min_p", "chat_template_kwargs"}, text: []string{"top_k", "min_p"}, ids: true, renames: true},
	SGLang:   {chat: []string{"top_k", "min_p", "chat_template_kwargs"}, text: []string{"top_k", "min_p"}, ids: true, renames: true},
	LMStudio: {chat: []string{"top_k", "min_p", "repeat_penalty"}, text: []string{"top_k", "min_p", "repeat_penalty"}},
	Ollama:   {},
	OpenAI:   {strict: true},
}

// standard are the fields of the OpenAI-style API that every kind is sent.
var standard = []string{
	"messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "logprobs", "top_logprobs", "reasoning_effort",
	"temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "logit_bias",
}

// standardText are those of text completions.
var standardText = []string{"temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias"}

// Model is a model of a server.
type Model struct {
	Kind   Kind
	Remote string // the name of the server in the configuration, for messages
	Name   string // what the server calls the model

	// Fields of requests that llama-server has by itself, for the kinds that know them.
	ChatFields, TextFields request.Fields
}

// HasOwnFields reports whether a kind knows the fields that llama-server has by itself.
func (k Kind) HasOwnFields() bool { return kinds[k].own }

// New returns the wire of a model.
func New(m Model) wire.Engine {
	t := kinds[m.Kind]
	if !t.own {
		m.ChatFields, m.TextFields = nil, nil
	}
	w := base{
		Model: m, traits: t,
		chatFields: request.NamesOf(slices.Concat(standard, t.chat), m.ChatFields),
		textFields: request.NamesOf(slices.Concat(standardText, t.text), m.TextFields),
	}
	switch m.Kind {
	case VLLM, LlamaServer, Lmcaddy:
		return &counting{ranking{w}}
	case SGLang:
		return &ranking{w}
	default:
		return &w
	}
}

type base struct {
	Model
	traits

	chatFields, textFields map[string]bool // that requests may have
}

type ranking struct{ base }

type counting struct{ ranking }

// Interface guards
var (
	_ wire.Completer = (*base)(nil)
	_ wire.Embedder  = (*base)(nil)
	_ wire.Pinner    = (*base)(nil)
	_ wire.Ranker    = (*ranking)(nil)
	_ wire.Counter   = (*counting)(nil)
)
