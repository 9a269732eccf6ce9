package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
)

// messagesOptions are options of a request.
type messagesOptions struct {
	thinking anthropic.Thinking
	single   bool
}

// messagesStream returns the stream for events.
func messagesStream(o messagesOptions, events []translate.Event) []byte {
	s := &anthropic.Stream{ID: "msg_0", Thinking: o.thinking, SingleCall: o.single}
	s.Begin(envelope.Model, 4096)
	var dst []byte
	for _, ev := range events {
		dst = s.Append(dst, ev)
	}
	return dst
}

// messagesBodyOf returns the body for events, nil if they end in a fault.
func messagesBodyOf(o messagesOptions, events []translate.Event) []byte {
	a := &anthropic.Answer{ID: "msg_0", Model: envelope.Model, ContextLength: 4096, Thinking: o.thinking, SingleCall: o.single}
	for _, ev := range events {
		a.Add(ev)
	}
	if _, ok := events[len(events)-1].(translate.Finish); !ok {
		return nil
	}
	return a.AppendBody(nil)
}

// TestMessages_EveryEnd compares the kinds of blocks and stop reasons that no transcript has with a golden file.
func TestMessages_EveryEnd(t *testing.T) {
	t.Parallel()
	thought, said := translate.Reasoning{Text: "Hm"}, translate.Text{Text: "Yes"}
	call := []translate.Event{translate.CallStart{Index: 0, ID: "a", Name: "one"}, translate.CallArgs{0, `{"x":`}, translate.CallArgs{0, `1}`}, translate.CallDone{Index: 0}}
	second := []translate.Event{translate.CallStart{Index: 1, Name: "two"}, translate.CallDone{Index: 1}}
	prompt, usage := translate.Prompt{Total: 9, Cached: 4, Processed: 4}, translate.Usage{Prompt: 9, Cached: 4, Completion: 3}
	end := func(stop translate.Stop, reason translate.FinishReason) []translate.Event {
		return []translate.Event{usage, stop, translate.Finish{Reason: reason}}
	}
	shown := messagesOptions{thinking: anthropic.ThinkingShown}
	var all bytes.Buffer
	for _, tt := range []struct {
		name    string
		options messagesOptions
		events  [][]translate.Event
	}{
		{"a stop sequence", shown, [][]translate.Event{{prompt, said}, end(translate.Stop{Reason: translate.StopString, Text: "END"}, translate.FinishStop)}},
		{"the limit", shown, [][]translate.Event{{prompt, said}, end(translate.Stop{Reason: translate.StopMaxTokens}, translate.FinishLength)}},
		{"the context", shown, [][]translate.Event{{prompt, said}, end(translate.Stop{Reason: translate.StopContext}, translate.FinishLength)}},
		{"nothing at all", shown, [][]translate.Event{end(translate.Stop{}, translate.FinishStop)}},
		{"only blanks", shown, [][]translate.Event{{translate.Text{Text: " \n"}}, end(translate.Stop{}, translate.FinishStop)}},
		{"blanks before a call", shown, [][]translate.Event{{translate.Text{Text: "\n\n"}}, call, end(translate.Stop{}, translate.FinishToolCalls)}},
		{"blanks before a text", shown, [][]translate.Event{{thought, translate.Text{Text: "\n"}, translate.Text{Text: "\n"}, said}, end(translate.Stop{}, translate.FinishStop)}},
		{"thoughts, shown", shown, [][]translate.Event{{prompt, thought, thought, said}, end(translate.Stop{}, translate.FinishStop)}},
		{"thoughts, omitted", messagesOptions{thinking: anthropic.ThinkingOmitted}, [][]translate.Event{{prompt, thought, thought, said}, end(translate.Stop{}, translate.FinishStop)}},
		{"thoughts, hidden", messagesOptions{}, [][]translate.Event{{prompt, thought, said, thought, said}, end(translate.Stop{}, translate.FinishStop)}},
		{"thoughts between texts", shown, [][]translate.Event{{thought, said, translate.Text{Text: " "}, thought, said}, end(translate.Stop{}, translate.FinishStop)}},
		{"two calls", shown, [][]translate.Event{{thought, said}, call, second, end(translate.Stop{}, translate.FinishToolCalls)}},
		{"one of two calls", messagesOptions{single: true}, [][]translate.Event{call, second, end(translate.Stop{}, translate.FinishToolCalls)}},
		{"a call that the limit has cut", shown, [][]translate.Event{call[:2], end(translate.Stop{}, translate.FinishLength)}},
		{"a call whose arguments are no object", shown, [][]translate.Event{{call[0], translate.CallArgs{0, "[1]"}}, end(translate.Stop{}, translate.FinishToolCalls)}},
		{"a fault", shown, [][]translate.Event{{prompt, said, translate.Fault{Err: translate.BrokenOff()}}}},
	} {
		var events []translate.Event
		for _, some := range tt.events {
			events = append(events, some...)
		}
		fmt.Fprintf(&all, "# %s\n%s%s\n\n", tt.name, messagesStream(tt.options, events), messagesBodyOf(tt.options, events))
	}
	testkit.Golden(t, "testdata/messages-ends.golden", all.Bytes())
}

func TestMessages_AnyCuttingGivesTheSame(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			for _, o := range everyMessagesOptions {
				events := decode(t, tr.upstream)
				wantStream, wantBody := messagesStream(o, events), messagesBodyOf(o, events)
				for name, pieces := range cuttings(tr.upstream) {
					events := decode(t, pieces...)
					diff := cmp.Diff(string(wantStream), string(messagesStream(o, events)))
					if diff += cmp.Diff(string(wantBody), string(messagesBodyOf(o, events))); diff != "" {
						t.Fatalf("%+v, %s (-whole +cut):\n%s", o, name, diff)
					}
				}
			}
		})
	}
}

var everyMessagesOptions = []messagesOptions{{anthropic.ThinkingHidden, false}, {anthropic.ThinkingShown, false}, {anthropic.ThinkingOmitted, true}}

// For any order of chunks, the events of the stream are in order and have the content of the body.
func TestMessages_AnyOrderOfChunks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		var upstream bytes.Buffer
		for range r.IntN(14) {
			fmt.Fprintf(&upstream, "%s\n\n", anyChunks[min(r.IntN(len(anyChunks)), r.IntN(2*len(anyChunks)))])
		}
		for _, o := range everyMessagesOptions {
			wantSameAnswer(t, o, decode(t, upstream.Bytes()))
		}
	}
}

func FuzzMessages(f *testing.F) {
	for _, tr := range transcripts(f) {
		f.Add(tr.upstream)
	}
	f.Fuzz(func(t *testing.T, upstream []byte) {
		for _, o := range everyMessagesOptions {
			wantSameAnswer(t, o, decode(t, upstream))
		}
	})
}

// wantSameAnswer assembles a stream as clients do and compares it with the body.
func wantSameAnswer(t *testing.T, o messagesOptions, events []translate.Event) {
	t.Helper()
	stream, body := messagesStream(o, events), messagesBodyOf(o, events)
	got, err := testkit.Message(stream)
	if err != nil {
		t.Fatalf("%v in\n%s\nof\n%s", err, stream, eventLines(t, events))
	}
	if (got == nil) != (body == nil) {
		t.Fatalf("the body is %s, the stream\n%s", body, stream)
	}
	if body == nil || gjson.GetBytes(body, "stop_reason").Str == "max_tokens" {
		return // a call that is cut off differs
	}
	var want map[string]any
	if err := json.Unmarshal(body, &want); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	content := want["content"].([]any)
	for _, block := range content {
		delete(block.(map[string]any), "citations")
	}
	if got["malformed"] != nil {
		return // a call whose arguments are no object, too
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-body +stream):\n%s\n%s", diff, stream)
	}
}
