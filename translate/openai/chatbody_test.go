package openai

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// called are the events of calls, whose arguments these are.
func called(reason translate.FinishReason, arguments ...string) []translate.Event {
	var events []translate.Event
	for i, args := range arguments {
		events = append(events, translate.CallStart{Index: i, ID: "id" + strconv.Itoa(i), Name: "tool"})
		if args != "" {
			events = append(events, translate.CallArgs{Index: i, Text: args[:1]}, translate.CallArgs{Index: i, Text: args[1:]})
		}
		events = append(events, translate.CallDone{Index: i})
	}
	return append(events, translate.Finish{Reason: reason})
}

func TestChatBody_WhatIsNoCallIsContent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		events  []translate.Event
		content string // as JSON
		args    string // of the calls, as JSON
		finish  string
	}{
		"a call":                       {called(translate.FinishToolCalls, `{"a":1}`), `null`, `["{\"a\":1}"]`, "tool_calls"},
		"two":                          {called(translate.FinishToolCalls, `{"a":1}`, `{}`), `null`, `["{\"a\":1}","{}"]`, "tool_calls"},
		"without arguments":            {called(translate.FinishToolCalls, ``), `null`, `["{}"]`, "tool_calls"},
		"cut":                          {called(translate.FinishLength, `{"a":`), `"{\"name\":\"tool\",\"arguments\":{\"a\":"`, ``, "length"},
		"cut at once":                  {called(translate.FinishLength, ``), `"{\"name\":\"tool\",\"arguments\":"`, ``, "length"},
		"cut in the second":            {called(translate.FinishLength, `{"a":1}`, `{"b`), `"{\"name\":\"tool\",\"arguments\":{\"b"`, `["{\"a\":1}"]`, "length"},
		"whole, then cut":              {called(translate.FinishLength, `{"a":1}`), `null`, `["{\"a\":1}"]`, "length"},
		"arguments that are no JSON":   {called(translate.FinishToolCalls, `{a}`), `"{\"name\":\"tool\",\"arguments\":{a}}"`, ``, "stop"},
		"arguments that are no object": {called(translate.FinishToolCalls, `[1]`), `"{\"name\":\"tool\",\"arguments\":[1]}"`, ``, "stop"},
		"one of two is none":           {called(translate.FinishToolCalls, `7`, `{}`), `"{\"name\":\"tool\",\"arguments\":7}"`, `["{}"]`, "tool_calls"},
		"behind text":                  {append([]translate.Event{translate.Text{Text: "Well: "}}, called(translate.FinishToolCalls, `7`)...), `"Well: {\"name\":\"tool\",\"arguments\":7}"`, ``, "stop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			choice := gjson.GetBytes(gather("", tt.events), "choices.0")
			args := choice.Get("message.tool_calls.#.function.arguments").Raw
			got := []string{choice.Get("message.content").Raw, args, choice.Get("finish_reason").Str}
			if diff := cmp.Diff([]string{tt.content, tt.args, tt.finish}, got); diff != "" {
				t.Errorf("content, arguments, finish reason (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChatBody_SingleCall(t *testing.T) {
	t.Parallel()
	body := gatherInto(&ChatBody{Envelope: envelope, SingleCall: true}, called(translate.FinishToolCalls, `{"a":1}`, `{"b":2}`))
	if args := gjson.GetBytes(body, "choices.0.message.tool_calls.#.function.arguments").Raw; args != `["{\"a\":1}"]` {
		t.Errorf("%s", body)
	}
}
