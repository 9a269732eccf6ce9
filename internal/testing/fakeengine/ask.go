package fakeengine

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// kind is a generating endpoint.
type kind int

const (
	chat kind = iota
	completion
	native // the real one's own endpoints: completions and infill
	embedding
	ranking
)

var generators = map[string]kind{
	"/v1/chat/completions": chat, "/chat/completions": chat,
	"/v1/completions": completion,
	"/completion":     native, "/infill": native,
	"/v1/embeddings": embedding,
	"/v1/rerank":     ranking,
}

// required returns the field that a request must have.
var required = map[kind]string{chat: "messages", completion: "prompt", native: "prompt", embedding: "input", ranking: "documents"}

// ask is a parsed request.
type ask struct {
	stream, progress, usage, verbose, perToken bool

	limit    int // tokens; -1: none
	choices  int
	stops    []string
	ping     time.Duration // 0: none
	thinking bool
	rounds   int // of tool calls since the last user message
	prompt   string
	tokens   int // of the prompt, by its words
	ids      []int32
	slot     int  // that it is pinned to; -1: any
	anew     bool // nothing that the slot holds is used

	begun beginning // of the answer, in the prompt

	fields        []string // of the last chunk; empty: all
	probabilities int      // number of likeliest tokens to report at each position
}

// parseAsk parses a request. The error says what is wrong with it.
func (v *server) parseAsk(k kind, body string) (ask, error) {
	if !gjson.Valid(body) {
		return ask{}, invalid("[json.exception.parse_error.101] parse error at line 1, column 1: syntax error while parsing value")
	}
	top := gjson.Parse(body)
	a := ask{
		stream: top.Get("stream").Bool(), usage: top.Get("stream_options.include_usage").Bool(),
		verbose: top.Get("verbose").Bool(), perToken: top.Get("timings_per_token").Bool(),
		limit: -1, choices: 1, thinking: true, slot: -1, anew: top.Get("cache_prompt").Type == gjson.False,
	}
	if slot := top.Get("id_slot"); slot.Type == gjson.Number {
		a.slot = int(slot.Int())
	}
	if v.args.states != "" {
		a.ids = idsOf(top, k)
	}
	a.progress = a.stream && top.Get("return_progress").Bool()
	switch required := required[k]; {
	case k == native && top.Get("input_prefix").Exists():
		a.prompt = top.Get("input_prefix").Str + top.Get("input_suffix").Str
		a.tokens = tokens(top.Get("input_prefix")) + tokens(top.Get("input_suffix")) + 3
	case !top.Get(required).Exists():
		return ask{}, invalid("'" + required + "' is required")
	case k == chat:
		a.prompt, a.tokens = render(body)
		a.rounds = toolRounds(top.Get("messages").Array())
		a.begun = begunBy(top.Get("messages").Array())
	default:
		a.prompt = top.Get(required).String()
		a.tokens = tokens(top.Get(required))
		a.begun.prompt = joined(top.Get(required))
	}
	a.probabilities = int(top.Get("n_probs").Int())
	for _, name := range top.Get("response_fields").Array() {
		a.fields = append(a.fields, name.Str)
	}
	for _, name := range []string{"n_predict", "max_completion_tokens", "max_tokens"} {
		if f := top.Get(name); f.Type == gjson.Number {
			if a.limit = int(f.Int()); a.limit == 0 {
				a.limit = 1 // as the real one does
			}
			break
		}
	}
	if n := top.Get("n"); n.Type == gjson.Number {
		if a.choices = int(n.Int()); a.choices < 1 || a.choices > v.slots.all {
			return ask{}, invalid(fmt.Sprintf("Field 'n': Value must be between 1 <= value <= %d, but got %d", v.slots.all, a.choices))
		}
	}
	a.stops = stopStrings(top.Get("stop"))
	if top.Get("chat_template_kwargs.enable_thinking").Type == gjson.False || top.Get("reasoning_effort").String() == "none" {
		a.thinking = false
	}
	seconds := v.args.ping
	if p := top.Get("sse_ping_interval"); p.Type == gjson.Number {
		seconds = int(p.Int())
	}
	a.ping = time.Duration(max(0, seconds)) * time.Second
	return a, nil
}

// tokens returns the number of tokens of a prompt or an input: the words of a text, or the elements of an array of token
// ids.
func tokens(v gjson.Result) int {
	switch {
	case v.IsArray():
		sum := 0
		for _, item := range v.Array() {
			sum += tokens(item)
		}
		return sum
	case v.Type == gjson.String:
		return len(fakekit.Words(v.Str))
	default:
		return 1
	}
}

func invalid(message string) *apiError {
	return &apiError{Code: http.StatusBadRequest, Message: message, Type: "invalid_request_error"}
}

func stopStrings(field gjson.Result) []string {
	var all []string
	for _, s := range field.Array() { // a lone value is an array of one
		if s.Type == gjson.String && s.Str != "" {
			all = append(all, s.Str)
		}
	}
	return all
}

// render returns the prompt as a chat template would write it, and its length in tokens.
func render(body string) (prompt string, tokens int) {
	var b strings.Builder
	tokens = 1
	messages := gjson.Get(body, "messages").Array()
	for i, m := range messages {
		text := textOf(m)
		tokens += len(fakekit.Words(text)) + len(fakekit.Words(m.Get("reasoning_content").Str))
		if i == len(messages)-1 && m.Get("role").Str == "assistant" { // the beginning of the answer
			return b.String() + "<|im_start|>assistant\n" + text, tokens
		}
		fmt.Fprintf(&b, "<|im_start|>%s\n%s<|im_end|>\n", m.Get("role").String(), text)
		tokens += 4
	}
	b.WriteString("<|im_start|>assistant\n")
	return b.String(), tokens
}

// textOf returns a message's text, from a string or a list of parts.
func textOf(message gjson.Result) string {
	c := message.Get("content")
	if !c.IsArray() {
		return c.String()
	}
	var b strings.Builder
	for _, part := range c.Array() {
		b.WriteString(part.Get("text").String())
	}
	return b.String()
}

func toolRounds(messages []gjson.Result) int {
	rounds := 0
	for _, m := range messages {
		switch {
		case m.Get("role").String() == "user":
			rounds = 0
		case len(m.Get("tool_calls").Array()) > 0:
			rounds++
		}
	}
	return rounds
}
