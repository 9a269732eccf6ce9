package llamaserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// decode is the events of a stream that comes in these pieces. Each piece is overwritten once it was fed, as a reader
// does with its buffer.
func decode(tb testing.TB, pieces ...[]byte) []translate.Event {
	tb.Helper()
	return decodeWith(tb, Wire{}.Decoder(&request.Chat{}), pieces...)
}

func decodeWith(tb testing.TB, d translate.Decoder, pieces ...[]byte) []translate.Event {
	tb.Helper()
	var events []translate.Event
	emit := func(ev translate.Event) error {
		events = append(events, ev)
		return nil
	}
	for _, p := range pieces {
		buf := append([]byte(nil), p...)
		if err := d.Feed(buf, emit); err != nil {
			tb.Fatal(err)
		}
		scribble(buf)
	}
	if err := d.Close(emit); err != nil {
		tb.Fatal(err)
	}
	return events
}

func scribble(p []byte) {
	for i := range p {
		p[i] = '#'
	}
}

// eventLines says each event on a line.
func eventLines(tb testing.TB, events []translate.Event) string {
	tb.Helper()
	var all strings.Builder
	for _, ev := range events {
		fmt.Fprintln(&all, eventLine(tb, ev))
	}
	return all.String()
}

func eventLine(tb testing.TB, ev translate.Event) string {
	tb.Helper()
	switch ev := ev.(type) {
	case translate.Prompt:
		return fmt.Sprintf("prompt: %d of %d, %d cached", ev.Processed, ev.Total, ev.Cached)
	case translate.Reasoning:
		return "reasoning: " + quoted(tb, ev.Text)
	case translate.Text:
		return "text: " + quoted(tb, ev.Text)
	case translate.CallStart:
		return fmt.Sprintf("call %d: %s, id %s", ev.Index, ev.Name, ev.ID)
	case translate.CallArgs:
		return fmt.Sprintf("call %d: arguments %s", ev.Index, quoted(tb, ev.Text))
	case translate.CallDone:
		return fmt.Sprintf("call %d: done", ev.Index)
	case translate.Logprobs:
		return "logprobs: " + string(ev.Content)
	case translate.Usage:
		return fmt.Sprintf("usage: prompt %d, cached %d, completion %d, reasoning %d", ev.Prompt, ev.Cached, ev.Completion, ev.Reasoning)
	case translate.Timings:
		return fmt.Sprintf("timings: prompt %v ms, predicted %v ms, %v a second, draft %d, accepted %d",
			ev.PromptMillis, ev.PredictedMillis, ev.PredictedPerSecond, ev.DraftTokens, ev.DraftAccepted)
	case translate.Stop:
		return strings.TrimSpace(fmt.Sprintf("stop: %s %s", ev.Reason, ev.Text))
	case translate.Finish:
		return "finish: " + string(ev.Reason)
	case translate.Fault:
		return fmt.Sprintf("fault: %d %s", ev.Err.Status(), ev.Err.Message)
	default:
		tb.Fatalf("a decoder emitted %T", ev)
		return ""
	}
}

func quoted(tb testing.TB, s string) string {
	tb.Helper()
	q, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	return string(q)
}
