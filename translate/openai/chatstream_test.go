package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
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

// The call of a custom tool has its input in place of arguments, however the model writes them.
func TestChat_CustomCalls(t *testing.T) {
	t.Parallel()
	events := []translate.Event{
		translate.CallStart{Index: 0, ID: "a", Name: "patch"},
		translate.CallArgs{Index: 0, Text: `{"input":"one\`},
		translate.CallArgs{Index: 0, Text: `n"`},
		translate.CallStart{Index: 1, ID: "b", Name: "look"},
		translate.CallArgs{Index: 0, Text: `}`},
		translate.CallDone{Index: 0},
		translate.CallDone{Index: 1},
		translate.CallStart{Index: 2, ID: "c", Name: "patch"},
		translate.CallArgs{Index: 2, Text: `any text`},
		translate.CallDone{Index: 2},
		translate.CallStart{Index: 3, ID: "d", Name: "patch"},
		translate.CallDone{Index: 3},
		translate.Finish{Reason: translate.FinishToolCalls},
	}
	custom := map[string]bool{"patch": true}
	want := `[{"id":"a","type":"custom","custom":{"name":"patch","input":"one\n"}},{"id":"b","type":"function","function":{"name":"look","arguments":"{}"}},` +
		`{"id":"c","type":"custom","custom":{"name":"patch","input":"any text"}},{"id":"d","type":"custom","custom":{"name":"patch","input":""}}]`
	body := gatherInto(&ChatBody{Envelope: envelope, Custom: custom}, events)
	if got := gjson.GetBytes(body, "choices.0.message.tool_calls").Raw; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s := NewChatStream(NewChatChunks(ChunkOptions{Envelope: envelope, Custom: custom, Tail: NewChatTail(1, false, nil)}), false)
	var stream []byte
	for _, ev := range events {
		stream = s.Append(stream, ev)
	}
	told := map[int64]string{}
	for line := range strings.Lines(string(stream)) {
		for _, call := range gjson.Get(strings.TrimPrefix(line, "data: "), "choices.0.delta.tool_calls").Array() {
			told[call.Get("index").Int()] += call.Get("type").Str + call.Get("custom.name").Str + call.Get("custom.input").Str + call.Get("function.name").Str + call.Get("function.arguments").Str
		}
	}
	if diff := cmp.Diff(map[int64]string{0: "custompatchone\n", 1: "functionlook{}", 2: "custompatchany text", 3: "custompatch"}, told); diff != "" {
		t.Errorf("the stream (-want +got):\n%s", diff)
	}
}

// A custom tool is a function with one argument to the model, and so are its earlier calls.
func TestParseChat_CustomTools(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"custom","custom":{"name":"patch","description":"Edits","format":{"type":"grammar","grammar":{"syntax":"regex","definition":"a+"}}}},{"type":"function","function":{"name":"look"}}]`
	const custom = `{"type":"function","function":{"name":"patch","description":"Edits\n\nThe input must match this grammar (regex):\na+","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}}`
	for fields, want := range map[string]string{
		tools: `[` + custom + `,{"type":"function","function":{"name":"look"}}]`,
		tools + `,"tool_choice":{"type":"custom","custom":{"name":"patch"}}`:                                                                    `[` + custom + `]`,
		tools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"custom","custom":{"name":"patch"}}]}}`: `[` + custom + `]`,
		tools + `,"tool_choice":{"type":"custom","custom":{"name":"x"}}`:                                                                        "invalid_value tool_choice",
		`"tools":[{"type":"custom","custom":{}}]`:                                                                                               "missing_required_parameter tools[0].custom.name",
		`"tools":[{"type":"custom","custom":{"name":"a","format":1}}]`:                                                                          "invalid_type tools[0].custom.format",
		`"tools":[{"type":"web_search"}]`:                                                                                                       "invalid_value tools[0].type",
	} {
		body := testkit.Scan(t, `{"messages":[{"role":"user","content":"A"}],`+fields+`}`)
		chat, err := ParseChat(body, request.Caps{})
		var got string
		if err != nil {
			got = err.Code + " " + err.Param
		} else if got = string(chat.Edit.Value(body, "tools")); !chat.Custom["patch"] || chat.Custom["look"] {
			t.Errorf("%s: the custom tools are %v", fields, chat.Custom)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", fields, got, want)
		}
	}
	body := testkit.Scan(t, `{"messages":[{"role":"user","content":"A"},{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"patch","input":"\"a\"\n"}}]},{"role":"tool","tool_call_id":"c","content":"ok"}]}`)
	chat, err := ParseChat(body, request.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := gjson.GetBytes(chat.Edit.Value(body, "messages"), "1.tool_calls").Raw, `[{"id":"c","type":"function","function":{"name":"patch","arguments":"{\"input\":\"\\\"a\\\"\\n\"}"}}]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := ParseChat(testkit.Scan(t, `{"messages":[{"role":"assistant","tool_calls":[{"type":"custom","custom":{"name":"patch","input":1}}]}]}`), request.Caps{}); err == nil || err.Param != "messages[0].tool_calls[0].custom.input" {
		t.Errorf("%+v", err)
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
