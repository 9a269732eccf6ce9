package fakemlx

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// chunk writes one chunk of a stream. With a nil finish reason it is one with text.
func (g *generation) chunk(finish any, t *token) error {
	choice := record{{"index", 0}, {"finish_reason", finish}}
	object := "text_completion"
	if g.ask.chat {
		object = "chat.completion.chunk"
		choice = append(choice, field{"delta", g.message(t.text, t.thought, t.call)})
	} else {
		choice = append(choice, field{"text", t.text})
	}
	return g.write("data: " + dumps(append(g.envelope(object), field{"choices", []any{choice}})) + "\n\n")
}

// message is a delta, whose empty parts are left out.
func (g *generation) message(text, thought string, call *fakekit.ToolCall) record {
	m := record{{"role", "assistant"}}
	if text != "" {
		m = append(m, field{"content", text})
	}
	if thought != "" {
		m = append(m, field{"reasoning", thought})
	}
	if call != nil {
		item := append(callRecord(call), field{"index", len(g.calls) - 1})
		m = append(m, field{"tool_calls", []any{item}})
	}
	return m
}

func callRecord(c *fakekit.ToolCall) record {
	id := c.ID
	if id == "" {
		id = newID()
	}
	return record{{"function", record{{"name", c.Name}, {"arguments", c.Arguments}}}, {"type", "function"}, {"id", id}}
}

func (g *generation) envelope(object string) record {
	return record{
		{"id", g.id},
		{"system_fingerprint", g.script().version() + "-0.32.2-fake"},
		{"object", object},
		{"model", g.ask.model},
		{"created", int(g.created)},
	}
}

func (g *generation) usage() field {
	return field{"usage", record{
		{"prompt_tokens", g.tokens},
		{"completion_tokens", g.sent},
		{"total_tokens", g.tokens + g.sent},
		{"prompt_tokens_details", record{{"cached_tokens", g.cached}}},
	}}
}

// finish writes the end of a stream, or the whole answer.
func (g *generation) finish(reason string) error {
	if !g.ask.stream {
		return g.whole(reason)
	}
	if err := g.chunk(reason, &token{}); err != nil {
		return err
	}
	counted, err := g.ask.usage()
	if err != nil {
		return err
	}
	if counted {
		last := append(g.envelope("chat.completion"), field{"choices", []any{}}, g.usage())
		if err := g.write("data: " + dumps(last) + "\n\n"); err != nil {
			return err
		}
	}
	if g.rule.NoDone {
		return nil
	}
	return g.write("data: [DONE]\n\n")
}

// whole writes an answer that isn't streamed.
func (g *generation) whole(reason string) error {
	choice := record{{"index", 0}, {"finish_reason", reason}}
	if g.ask.logprobs {
		var all []any
		for i := range g.sent {
			all = append(all, record{{"id", i}, {"logprob", -0.5}})
		}
		choice = append(choice, field{"logprobs", record{{"content", all}}})
	}
	object := "text_completion"
	if !g.ask.chat {
		choice = append(choice, field{"text", g.text.String()})
	} else {
		object = "chat.completion"
		message := record{{"role", "assistant"}, {"content", nil}}
		if g.text.Len() > 0 {
			message[1].value = g.text.String()
		}
		if g.thought.Len() > 0 {
			message = append(message, field{"reasoning", g.thought.String()})
		}
		var calls []any
		for i := range g.calls {
			calls = append(calls, callRecord(&g.calls[i]))
		}
		if calls != nil {
			message = append(message, field{"tool_calls", calls})
		}
		choice = append(choice, field{"message", message})
	}
	body := dumps(append(g.envelope(object), field{"choices", []any{choice}}, g.usage()))
	fields := append([]string{"Content-type: application/json"}, cors...)
	head := "HTTP/1.0 200 OK\r\nServer: BaseHTTP/0.6 Python/3.14.8\r\nDate: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n" +
		strings.Join(append(fields, "Content-Length: "+strconv.Itoa(len(body))), "\r\n")
	return g.write(head + "\r\n\r\n" + body)
}
