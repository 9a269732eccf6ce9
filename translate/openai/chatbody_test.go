package openai

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// envelope is the envelope of the tests' answers.
var envelope = Envelope{ID: "chatcmpl-0", Created: 1700000000, Model: "lmcaddy/tinychat", Fingerprint: "b1"}

// gather returns the body of a chat with these events.
func gather(field ReasoningField, events []translate.Event) []byte {
	return gatherInto(&ChatBody{Envelope: envelope, Reasoning: field}, events)
}

// gatherInto returns the body that b makes of the events of one choice, or nil if they don't reach its end.
func gatherInto(b *ChatBody, events []translate.Event) []byte {
	var choice ChatChoice
	for _, ev := range events {
		choice.Add(ev)
		if _, ok := ev.(translate.Finish); ok {
			return b.AppendBody(nil, []*ChatChoice{&choice})
		}
	}
	return nil
}

// called returns the events of calls with these arguments.
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

func TestChatBody_ReasoningField(t *testing.T) {
	t.Parallel()
	events := []translate.Event{translate.Reasoning{Text: "Hm"}, translate.Reasoning{Text: "m."}, translate.Text{Text: "Hi"}, translate.Usage{Prompt: 3, Cached: 1, Completion: 2}, translate.Finish{Reason: translate.FinishStop}}
	for field, want := range map[ReasoningField]string{
		"":               `"content":"Hi","refusal":null,"reasoning":"Hmm."}`,
		ReasoningPlain:   `"content":"Hi","refusal":null,"reasoning":"Hmm."}`,
		ReasoningContent: `"content":"Hi","refusal":null,"reasoning_content":"Hmm."}`,
	} {
		if got := string(gather(field, events)); !strings.Contains(got, want) {
			t.Errorf("field %q: %s", field, got)
		}
	}
}

// A fault appends no body, since the caller answers with an error status.
func TestChatBody_SaysNothingOfAFault(t *testing.T) {
	t.Parallel()
	if got := gather("", []translate.Event{translate.Prompt{}, translate.Text{Text: "Hi"}, translate.Usage{}, translate.Fault{Err: translate.BrokenOff()}}); len(got) > 0 {
		t.Errorf("body: %s", got)
	}
}

// finish_reason and stop_reason agree.
func TestOutcome_ReasonsAgree(t *testing.T) {
	t.Parallel()
	call := []translate.Event{translate.CallStart{Name: "now", ID: "a"}, translate.CallArgs{Text: `{}`}, translate.CallDone{}}
	broken := []translate.Event{translate.CallStart{Name: "now", ID: "a"}, translate.CallArgs{Text: `{"a`}, translate.CallDone{}}
	for name, tt := range map[string]struct {
		events []translate.Event
		want   string
	}{
		"a call":                         {append(call[:3:3], translate.Finish{Reason: translate.FinishToolCalls}), "tool_calls toolCalls"},
		"a call that is none":            {append(broken[:3:3], translate.Finish{Reason: translate.FinishToolCalls}), "stop eosFound"},
		"a call, and the word for texts": {append(call[:3:3], translate.Stop{Reason: translate.StopEOS}, translate.Finish{Reason: translate.FinishStop}), "tool_calls toolCalls"},
		"the end":                        {[]translate.Event{translate.Text{Text: "a"}, translate.Finish{Reason: translate.FinishStop}}, "stop eosFound"},
		"a stop string":                  {[]translate.Event{translate.Text{Text: "a"}, translate.Stop{Reason: translate.StopString, Text: "b"}, translate.Finish{Reason: translate.FinishStop}}, "stop stopStringFound"},
		"the end, at a limit":            {[]translate.Event{translate.Text{Text: "a"}, translate.Stop{Reason: translate.StopMaxTokens}, translate.Finish{Reason: translate.FinishStop}}, "stop eosFound"},
		"a limit":                        {[]translate.Event{translate.Text{Text: "a"}, translate.Stop{Reason: translate.StopEOS}, translate.Finish{Reason: translate.FinishLength}}, "length maxPredictedTokensReached"},
		"the context":                    {[]translate.Event{translate.Text{Text: "a"}, translate.Stop{Reason: translate.StopContext}, translate.Finish{Reason: translate.FinishLength}}, "length contextLengthReached"},
	} {
		b := ChatBody{Extra: func(o *translate.Outcome) []byte { return []byte(`"stop_reason":"` + string(o.StopReason(100)) + `"`) }}
		got := gatherInto(&b, tt.events)
		if said := gjson.GetBytes(got, "choices.0.finish_reason").Str + " " + gjson.GetBytes(got, "stop_reason").Str; said != tt.want {
			t.Errorf("%s: %s, want %s", name, said, tt.want)
		}
	}
}
