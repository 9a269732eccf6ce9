package fakeengine

import (
	"strings"
	"time"
)

// chunk is a chunk of a stream, or a whole answer.
type chunk struct {
	Choices     []any     `json:"choices"`
	Created     int64     `json:"created"`
	ID          string    `json:"id"`
	Model       string    `json:"model"`
	Fingerprint string    `json:"system_fingerprint"`
	Object      string    `json:"object"`
	Usage       *usage    `json:"usage,omitempty"`
	Progress    *progress `json:"prompt_progress,omitempty"`
	Timings     *timings  `json:"timings,omitempty"`
	Verbose     object    `json:"__verbose,omitempty"`
}

// inWhole has the fields of a chunk in the order of whole answers and of text completions.
type inWhole struct {
	Choices     []any     `json:"choices"`
	Created     int64     `json:"created"`
	Model       string    `json:"model"`
	Fingerprint string    `json:"system_fingerprint"`
	Object      string    `json:"object"`
	Usage       *usage    `json:"usage,omitempty"`
	ID          string    `json:"id"`
	Progress    *progress `json:"prompt_progress,omitempty"`
	Verbose     object    `json:"__verbose,omitempty"`
	Timings     *timings  `json:"timings,omitempty"`
}

func (g *generation) encode(c *chunk) []byte {
	if g.ask.stream && g.kind == chat {
		return encode(c)
	}
	return encode(inWhole{
		Choices: c.Choices, Created: c.Created, Model: c.Model, Fingerprint: c.Fingerprint, Object: c.Object,
		Usage: c.Usage, ID: c.ID, Progress: c.Progress, Verbose: c.Verbose, Timings: c.Timings,
	})
}

// chatChoice has a delta or a message.
type chatChoice struct {
	FinishReason *string `json:"finish_reason"`
	Index        int     `json:"index"`
	Delta        any     `json:"delta,omitempty"`
	Message      any     `json:"message,omitempty"`
}

type textChoice struct {
	Text         string    `json:"text"`
	Index        int       `json:"index"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

type roleDelta struct {
	Role    string  `json:"role"`
	Content *string `json:"content"`
}

type textDelta struct {
	Reasoning *string     `json:"reasoning_content,omitempty"`
	Content   *string     `json:"content,omitempty"`
	ToolCalls []callDelta `json:"tool_calls,omitempty"`
}

type callDelta struct {
	Index    int          `json:"index"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function functionPart `json:"function"`
}

type functionPart struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

type message struct {
	Role      string      `json:"role"`
	Content   string      `json:"content"`
	Reasoning string      `json:"reasoning_content,omitempty"`
	ToolCalls []wholeCall `json:"tool_calls,omitempty"`
}

type wholeCall struct {
	Type     string        `json:"type"`
	Function wholeFunction `json:"function"`
	ID       string        `json:"id"`
}

type wholeFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type usage struct {
	Completion int `json:"completion_tokens"`
	Prompt     int `json:"prompt_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

type progress struct {
	Total     int   `json:"total"`
	Cache     int   `json:"cache"`
	Processed int   `json:"processed"`
	TimeMS    int64 `json:"time_ms"`
}

type timings struct {
	CacheN              int     `json:"cache_n"`
	PromptN             int     `json:"prompt_n"`
	PromptMS            float64 `json:"prompt_ms"`
	PromptPerTokenMS    float64 `json:"prompt_per_token_ms"`
	PromptPerSecond     float64 `json:"prompt_per_second"`
	PredictedN          int     `json:"predicted_n"`
	PredictedMS         float64 `json:"predicted_ms"`
	PredictedPerTokenMS float64 `json:"predicted_per_token_ms"`
	PredictedPerSecond  float64 `json:"predicted_per_second"`
	DraftN              *int    `json:"draft_n,omitempty"`
	DraftAccepted       *int    `json:"draft_n_accepted,omitempty"`
}

// chunk begins a chunk with these choices.
func (g *generation) chunk(choices ...any) *chunk {
	c := &chunk{
		Choices: append([]any{}, choices...), Created: g.created, ID: g.id, Model: g.args.id(),
		Fingerprint: g.fingerprint, Object: "chat.completion.chunk",
	}
	if g.kind == completion {
		c.Object = "text_completion"
	}
	return c
}

// delta is a choice of a stream. Text completions have a text where chats have a delta.
func (g *generation) delta(index int, delta any) any {
	if g.kind == completion {
		return textChoice{Index: index}
	}
	return chatChoice{Index: index, Delta: delta}
}

// lastDelta says why the generation ended.
func (g *generation) lastDelta(index int) any {
	if g.kind == completion {
		return textChoice{Index: index, FinishReason: &g.plan.finish}
	}
	return chatChoice{Index: index, FinishReason: &g.plan.finish, Delta: struct{}{}}
}

func (g *generation) pieceDelta(index int, p *piece) any {
	var d textDelta
	switch {
	case g.kind == completion:
		return textChoice{Index: index, Text: p.text}
	case p.call != nil:
		c := callDelta{Index: p.call.index, ID: p.call.id, Function: functionPart{Name: p.call.name, Arguments: p.call.arguments}}
		if c.ID != "" {
			c.Type = "function"
		}
		d.ToolCalls = []callDelta{c}
	case p.reasoning != "":
		d.Reasoning = &p.reasoning
	default:
		d.Content = &p.text
	}
	return chatChoice{Index: index, Delta: d}
}

// whole is a choice of an answer that isn't streamed.
func (g *generation) whole(index int) any {
	var text, reasoning strings.Builder
	m := message{Role: "assistant"}
	for _, p := range g.plan.pieces {
		text.WriteString(p.text)
		reasoning.WriteString(p.reasoning)
		switch {
		case p.call == nil:
		case p.call.id != "":
			m.ToolCalls = append(m.ToolCalls, wholeCall{
				Type: "function", ID: p.call.id, Function: wholeFunction{Name: p.call.name, Arguments: p.call.arguments},
			})
		default:
			m.ToolCalls[len(m.ToolCalls)-1].Function.Arguments += p.call.arguments
		}
	}
	if g.kind == completion {
		return textChoice{FinishReason: &g.plan.finish, Index: index, Text: text.String()}
	}
	m.Content, m.Reasoning = text.String(), reasoning.String()
	return chatChoice{FinishReason: &g.plan.finish, Index: index, Message: m}
}

func (g *generation) usage() *usage {
	u := &usage{Completion: g.sent, Prompt: g.prompt, Total: g.prompt + g.sent}
	u.Details.Cached = g.cached
	return u
}

func (g *generation) timings() *timings {
	ms := func(d time.Duration) float64 { return max(0.001, float64(d.Microseconds())/1000) } // never 0, to be divided by
	t := &timings{
		CacheN: g.cached, PromptN: g.prompt - g.cached, PromptMS: ms(g.first.Sub(g.begin)),
		PredictedN: g.sent, PredictedMS: ms(time.Since(g.first)),
	}
	if t.PromptN > 0 {
		t.PromptPerTokenMS = t.PromptMS / float64(t.PromptN)
		t.PromptPerSecond = 1000 / t.PromptPerTokenMS
	}
	if t.PredictedN > 1 { // the first token's time belongs to the prompt
		t.PredictedPerTokenMS = t.PredictedMS / float64(t.PredictedN-1)
		t.PredictedPerSecond = 1000 / t.PredictedPerTokenMS
	}
	if g.rule.DraftTokens > 0 {
		t.DraftN, t.DraftAccepted = &g.rule.DraftTokens, &g.rule.DraftAccepted
	}
	return t
}

// verbose is what "verbose": true adds to the chunk with the finish reason.
func (g *generation) verbose() object {
	var text strings.Builder
	for _, p := range g.plan.pieces {
		if !g.ask.stream { // a stream has told it already
			text.WriteString(p.text)
		}
	}
	return object{
		"index": 0, "content": text.String(), "tokens": []int{}, "id_slot": g.held[0], "stop": true, "model": g.args.id(),
		"tokens_predicted": g.sent, "tokens_evaluated": g.prompt, "tokens_cached": g.prompt + g.sent,
		"generation_settings": object{"n_predict": g.ask.limit}, "prompt": g.ask.prompt, "truncated": false,
		"has_new_line": strings.Contains(text.String(), "\n"), "timings": g.timings(),
		"stop_type": g.plan.stopType, "stopping_word": g.plan.stopString,
	}
}
