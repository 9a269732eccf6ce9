package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Clients put the pieces of a call together by its index. Those of different calls must never have the same, whatever the
// engine does.
func TestChat_CallsStayApart(t *testing.T) {
	t.Parallel()
	start := func(i int, name string) translate.Event {
		return translate.CallStart{Index: i, ID: "id-" + name, Name: name}
	}
	args := func(i int, text string) translate.Event { return translate.CallArgs{Index: i, Text: text} }
	done := func(i int) translate.Event { return translate.CallDone{Index: i} }
	for name, tt := range map[string]struct {
		single bool
		events []translate.Event
		want   map[string]string // arguments by name
	}{
		"interleaved": {events: []translate.Event{start(0, "a"), start(1, "b"), args(1, `{"b":`), args(0, `{}`), args(1, `1}`), done(1), done(0)}, want: map[string]string{"a": `{}`, "b": `{"b":1}`}},
		"an index twice": {
			events: []translate.Event{start(0, "a"), args(0, `{"a":1}`), done(0), start(0, "b"), args(0, `{"b":2}`), done(0)},
			want:   map[string]string{"a": `{"a":1}`, "b": `{"b":2}`},
		},
		"an index twice, without arguments": {events: []translate.Event{start(0, "a"), done(0), start(0, "b"), args(0, `{"b":2}`), done(0)}, want: map[string]string{"a": `{}`, "b": `{"b":2}`}},
		"a single call, an index twice":     {single: true, events: []translate.Event{start(0, "a"), done(0), start(0, "b"), args(0, `{"b":2}`), done(0)}, want: map[string]string{"a": `{}`}},
		"a single call, not from 0":         {single: true, events: []translate.Event{start(3, "a"), args(3, `{"a":1}`), done(3), start(4, "b"), args(4, `{"b":2}`), done(4)}, want: map[string]string{"a": `{"a":1}`}},
		"pieces without a start":            {events: []translate.Event{args(7, "x"), start(0, "a"), args(1, "y"), args(0, `{}`), done(5), done(0)}, want: map[string]string{"a": `{}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := append(tt.events, translate.Finish{Reason: translate.FinishToolCalls})
			if diff := cmp.Diff(tt.want, callsOfStream(t, tt.single, events)); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}
			body := gatherInto(&ChatBody{Envelope: envelope, SingleCall: tt.single}, events)
			got := map[string]string{}
			for _, call := range gjson.GetBytes(body, "choices.0.message.tool_calls").Array() {
				got[call.Get("function.name").Str] = call.Get("function.arguments").Str
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// callsOfStream puts a stream's calls together as a client does: arguments by name.
func callsOfStream(t *testing.T, single bool, events []translate.Event) map[string]string {
	t.Helper()
	s := NewChatStream(NewChatChunks(ChunkOptions{Envelope: envelope, Tail: NewChatTail(1, false, nil)}), single)
	var stream []byte
	for _, ev := range events {
		stream = s.Append(stream, ev)
	}
	var names, arguments []string
	for line := range strings.Lines(string(stream)) {
		for _, call := range gjson.Get(strings.TrimPrefix(line, "data: "), "choices.0.delta.tool_calls").Array() {
			n := int(call.Get("index").Int())
			if name := call.Get("function.name"); name.Exists() {
				if n != len(names) {
					t.Errorf("call %s has the index %d, want %d", name.Str, n, len(names))
				}
				names, arguments = append(names, name.Str), append(arguments, "")
			}
			if n >= len(names) {
				t.Fatalf("a piece of a call that hasn't begun: %s", line)
			}
			arguments[n] += call.Get("function.arguments").Str
		}
	}
	got := map[string]string{}
	for i, name := range names {
		got[name] = arguments[i]
	}
	return got
}
