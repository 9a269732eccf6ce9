package translate

import (
	"encoding/json"
	"strings"
)

// ChatBody gathers the events of one upstream request into the body of an OpenAI-style chat completion. It is an
// [Encoder] that says nothing until Finish, and then all.
type ChatBody struct {
	ID          string // "chatcmpl-…"
	Created     int64  // Unix time, in seconds
	Model       string // the instance that answers
	Fingerprint string // of the engine
	Reasoning   ReasoningField

	text, reasoning strings.Builder
	calls           []chatCall
	args            [][]byte // of each call, as they come
	logprobs        []json.RawMessage
	usage           Usage
}

type (
	chatCompletion struct {
		ID          string       `json:"id"`
		Object      string       `json:"object"`
		Created     int64        `json:"created"`
		Model       string       `json:"model"`
		Choices     []chatChoice `json:"choices"`
		Usage       chatUsage    `json:"usage"`
		Fingerprint string       `json:"system_fingerprint,omitempty"`
	}
	chatChoice struct {
		Index    int           `json:"index"`
		Message  chatMessage   `json:"message"`
		Logprobs *chatLogprobs `json:"logprobs"`
		Finish   FinishReason  `json:"finish_reason"`
	}
	chatMessage struct {
		Role             string     `json:"role"`
		Content          *string    `json:"content"`
		Reasoning        string     `json:"reasoning,omitempty"`
		ReasoningContent string     `json:"reasoning_content,omitempty"`
		Calls            []chatCall `json:"tool_calls,omitempty"`
	}
	chatCall struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	chatLogprobs struct {
		Content []json.RawMessage `json:"content"`
	}
	chatUsage struct {
		Prompt     int              `json:"prompt_tokens"`
		Completion int              `json:"completion_tokens"`
		Total      int              `json:"total_tokens"`
		Details    chatUsageDetails `json:"prompt_tokens_details"`
	}
	chatUsageDetails struct {
		Cached int `json:"cached_tokens"`
	}
)

// Append gathers ev, and with Finish appends the body.
func (b *ChatBody) Append(dst []byte, ev Event) []byte {
	switch ev := ev.(type) {
	case Text:
		b.text.WriteString(ev.Text)
	case Reasoning:
		b.reasoning.WriteString(ev.Text)
	case CallStart:
		call := chatCall{ID: ev.ID, Type: "function"}
		call.Function.Name = ev.Name
		b.calls = append(b.calls, call)
		b.args = append(b.args, nil)
	case CallArgs:
		if n := len(b.args); n > 0 {
			b.args[n-1] = append(b.args[n-1], ev.Text...)
		}
	case Logprobs:
		b.addLogprobs(ev.Content)
	case Usage:
		b.usage = ev
	case Finish:
		return appendJSON(dst, b.body(ev.Reason))
	}
	return dst
}

func (b *ChatBody) addLogprobs(content json.RawMessage) {
	var tokens []json.RawMessage
	if json.Unmarshal(content, &tokens) == nil {
		b.logprobs = append(b.logprobs, tokens...)
	}
}

func (b *ChatBody) body(reason FinishReason) chatCompletion {
	if last := len(b.calls) - 1; reason == FinishLength && last >= 0 && !json.Valid(b.args[last]) {
		b.calls = b.calls[:last] // cut by the limit: no client could make this call
	}
	for i := range b.calls {
		b.calls[i].Function.Arguments = string(b.args[i])
	}
	message := chatMessage{Role: "assistant", Calls: b.calls}
	if text := b.text.String(); text != "" || len(b.calls) == 0 {
		message.Content = &text
	}
	if b.Reasoning == ReasoningContent {
		message.ReasoningContent = b.reasoning.String()
	} else {
		message.Reasoning = b.reasoning.String()
	}
	choice := chatChoice{Message: message, Finish: reason}
	if len(b.logprobs) > 0 {
		choice.Logprobs = &chatLogprobs{b.logprobs}
	}
	return chatCompletion{
		ID: b.ID, Object: "chat.completion", Created: b.Created, Model: b.Model,
		Choices: []chatChoice{choice},
		Usage: chatUsage{
			Prompt: b.usage.Prompt, Completion: b.usage.Completion, Total: b.usage.Prompt + b.usage.Completion,
			Details: chatUsageDetails{b.usage.Cached},
		},
		Fingerprint: b.Fingerprint,
	}
}

var _ Encoder = (*ChatBody)(nil)
