package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// Outcome is what a client of any dialect gets, in the words of none.
type Outcome struct {
	Status int
	Error  string // the message; empty: there is none

	Text, Thinking string
	Calls          []Call // with arguments whose spaces and order don't matter
	Stop           string // StopEnd, StopLimit or StopCall; empty: the dialect doesn't say
}

// The reasons for which answers end.
const (
	StopEnd   = "end"
	StopLimit = "limit"
	StopCall  = "call"
)

// stops are the dialects' words for the reasons.
var stops = map[string]string{
	"stop": StopEnd, "end_turn": StopEnd, "completed": StopEnd, "length": StopLimit, "max_tokens": StopLimit, "max_output_tokens": StopLimit,
	"tool_calls": StopCall, "tool_use": StopCall,
}

// Outcome sends a request to a dialect, and reads what comes, streamed or in one piece.
func (s *Server) Outcome(d *Door, request Fields) (Outcome, error) {
	reply, err := s.Try(d.Path, request)
	o := Outcome{Status: reply.Status}
	if err != nil {
		return o, err
	}
	pieces := []gjson.Result{gjson.Parse(reply.Body)}
	if request["stream"] == true && reply.Status == http.StatusOK {
		if pieces, err = piecesOf(reply); err != nil {
			return o, err
		}
	}
	for _, piece := range pieces {
		if e := piece.Get("error"); e.Exists() && e.Type != gjson.Null {
			o.Error = e.Get("message").Str
			if e.Type == gjson.String {
				o.Error = e.Str
			}
			continue
		}
		d.Read(&o, piece)
	}
	for i := range o.Calls {
		if o.Calls[i].Arguments, err = canonical(o.Calls[i].Arguments); err != nil {
			return o, err
		}
	}
	if len(o.Calls) > 0 && o.Stop == StopEnd {
		o.Stop = StopCall // where a dialect has no other word
	}
	return o, nil
}

// piecesOf returns the JSON of a stream: of server-sent events, or of lines.
func piecesOf(reply Reply) (pieces []gjson.Result, _ error) {
	isLines := strings.HasPrefix(reply.Header.Get("Content-Type"), "application/x-ndjson")
	for line := range strings.SplitSeq(reply.Body, "\n") {
		data, isData := strings.CutPrefix(line, "data: ")
		switch {
		case isLines:
			data = strings.TrimSpace(line)
		case !isData:
			continue
		}
		switch {
		case data == "", data == "[DONE]":
		case !gjson.Valid(data):
			return nil, fmt.Errorf("a piece isn't JSON: %s", data)
		default:
			pieces = append(pieces, gjson.Parse(data))
		}
	}
	return pieces, nil
}

// canonical returns a JSON object with its members in order.
func canonical(object string) (string, error) {
	var members map[string]any
	if err := json.Unmarshal([]byte(object), &members); err != nil {
		return "", fmt.Errorf("arguments %q: %w", object, err)
	}
	text, err := json.Marshal(members)
	return string(text), err
}

func (o *Outcome) stop(word gjson.Result) {
	if word.Str != "" {
		o.Stop = stops[word.Str]
		if o.Stop == "" {
			o.Stop = word.Str
		}
	}
}

// call returns the call with an index, which it adds if there is none.
func (o *Outcome) call(index int) *Call {
	for len(o.Calls) <= index {
		o.Calls = append(o.Calls, Call{})
	}
	return &o.Calls[index]
}

// readChoice reads a chat or text completion, or a chunk of one.
func readChoice(o *Outcome, piece gjson.Result) {
	choice := piece.Get("choices.0")
	o.Text += choice.Get("text").Str
	for _, name := range []string{"message", "delta"} {
		said := choice.Get(name)
		o.Text += said.Get("content").Str
		o.Thinking += said.Get("reasoning").Str
		for i, call := range said.Get("tool_calls").Array() {
			if index := call.Get("index"); index.Exists() {
				i = int(index.Int())
			}
			o.call(i).Name += call.Get("function.name").Str
			o.call(i).Arguments += call.Get("function.arguments").Str
		}
	}
	o.stop(choice.Get("finish_reason"))
}

// readBlocks reads a message of Anthropic's, or an event of one.
func readBlocks(o *Outcome, piece gjson.Result) {
	add := func(block gjson.Result) {
		o.Text += block.Get("text").Str
		o.Thinking += block.Get("thinking").Str
		if block.Get("type").Str == "tool_use" {
			c := o.call(len(o.Calls))
			if c.Name = block.Get("name").Str; block.Get("input.@keys.#").Int() > 0 { // in a stream it is empty, and what follows counts
				c.Arguments = block.Get("input").Raw
			}
		}
		if part := block.Get("partial_json"); part.Exists() && len(o.Calls) > 0 {
			o.Calls[len(o.Calls)-1].Arguments += part.Str
		}
	}
	for _, block := range piece.Get("content").Array() {
		add(block)
	}
	switch piece.Get("type").Str {
	case "content_block_start":
		add(piece.Get("content_block"))
	case "content_block_delta":
		add(piece.Get("delta"))
	}
	o.stop(piece.Get("stop_reason"))
	o.stop(piece.Get("delta.stop_reason"))
}

// readItems reads a response of OpenAI's Responses API, or an event of one. Of a stream, the deltas count.
func readItems(o *Outcome, piece gjson.Result) {
	addCall := func(item gjson.Result) {
		if item.Get("type").Str == "function_call" {
			o.Calls = append(o.Calls, Call{item.Get("name").Str, item.Get("arguments").Str})
		}
	}
	switch kind := piece.Get("type").Str; kind {
	case "response.output_text.delta":
		o.Text += piece.Get("delta").Str
	case "response.reasoning_text.delta":
		o.Thinking += piece.Get("delta").Str
	case "response.output_item.done":
		addCall(piece.Get("item"))
	case "response.completed", "response.incomplete", "response.failed":
		piece = piece.Get("response")
		if e := piece.Get("error"); e.IsObject() {
			o.Error = e.Get("message").Str
		}
		o.stop(piece.Get("status"))
		o.stop(piece.Get("incomplete_details.reason"))
	case "":
		o.Text, o.Thinking = o.Text+ResponseText(piece), o.Thinking+ResponseThoughts(piece)
		for _, item := range piece.Get("output").Array() {
			addCall(item)
		}
		o.stop(piece.Get("status"))
		o.stop(piece.Get("incomplete_details.reason"))
	}
}

// readNative reads a result of native chat, or an event.
func readNative(o *Outcome, piece gjson.Result) {
	switch piece.Get("type").Str {
	case "message.delta":
		o.Text += piece.Get("content").Str
	case "reasoning.delta":
		o.Thinking += piece.Get("content").Str
	}
	for _, item := range piece.Get("output").Array() {
		switch item.Get("type").Str {
		case "message":
			o.Text += item.Get("content").Str
		case "reasoning":
			o.Thinking += item.Get("content").Str
		}
	}
}

// readLine reads an answer of Ollama's, or a line of one.
func readLine(o *Outcome, piece gjson.Result) {
	said := piece.Get("message")
	o.Text += said.Get("content").Str + piece.Get("response").Str
	o.Thinking += said.Get("thinking").Str + piece.Get("thinking").Str
	for _, call := range said.Get("tool_calls").Array() {
		o.Calls = append(o.Calls, Call{call.Get("function.name").Str, call.Get("function.arguments").Raw})
	}
	o.stop(piece.Get("done_reason"))
}
