package translate

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// called are the events of calls, whose arguments these are.
func called(reason FinishReason, arguments ...string) []Event {
	var events []Event
	for i, args := range arguments {
		events = append(events, CallStart{Index: i, ID: "id" + strconv.Itoa(i), Name: "tool"})
		if args != "" {
			events = append(events, CallArgs{Index: i, Text: args[:1]}, CallArgs{Index: i, Text: args[1:]})
		}
		events = append(events, CallDone{Index: i})
	}
	return append(events, Finish{reason})
}

func TestChatBody_WhatIsNoCallIsContent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		events  []Event
		content string // as JSON
		args    string // of the calls, as JSON
		finish  string
	}{
		"a call":                       {called(FinishToolCalls, `{"a":1}`), `null`, `["{\"a\":1}"]`, "tool_calls"},
		"two":                          {called(FinishToolCalls, `{"a":1}`, `{}`), `null`, `["{\"a\":1}","{}"]`, "tool_calls"},
		"without arguments":            {called(FinishToolCalls, ``), `null`, `["{}"]`, "tool_calls"},
		"cut":                          {called(FinishLength, `{"a":`), `"{\"name\":\"tool\",\"arguments\":{\"a\":"`, ``, "length"},
		"cut at once":                  {called(FinishLength, ``), `"{\"name\":\"tool\",\"arguments\":"`, ``, "length"},
		"cut in the second":            {called(FinishLength, `{"a":1}`, `{"b`), `"{\"name\":\"tool\",\"arguments\":{\"b"`, `["{\"a\":1}"]`, "length"},
		"whole, then cut":              {called(FinishLength, `{"a":1}`), `null`, `["{\"a\":1}"]`, "length"},
		"arguments that are no JSON":   {called(FinishToolCalls, `{a}`), `"{\"name\":\"tool\",\"arguments\":{a}}"`, ``, "stop"},
		"arguments that are no object": {called(FinishToolCalls, `[1]`), `"{\"name\":\"tool\",\"arguments\":[1]}"`, ``, "stop"},
		"one of two is none":           {called(FinishToolCalls, `7`, `{}`), `"{\"name\":\"tool\",\"arguments\":7}"`, `["{}"]`, "tool_calls"},
		"behind text":                  {append([]Event{Text{"Well: "}}, called(FinishToolCalls, `7`)...), `"Well: {\"name\":\"tool\",\"arguments\":7}"`, ``, "stop"},
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
	b := ChatBody{Envelope: envelope, SingleCall: true}
	var body []byte
	for _, ev := range called(FinishToolCalls, `{"a":1}`, `{"b":2}`) {
		body = b.Append(body, ev)
	}
	if args := gjson.GetBytes(body, "choices.0.message.tool_calls.#.function.arguments").Raw; args != `["{\"a\":1}"]` {
		t.Errorf("%s", body)
	}
}

func TestOutcome_StopReason(t *testing.T) {
	t.Parallel()
	short, full := Usage{Prompt: 10, Completion: 5}, Usage{Prompt: 10, Completion: 90}
	for name, tt := range map[string]struct {
		o    Outcome
		want StopReason
	}{
		"its own end":            {Outcome{Reason: FinishStop, Usage: short}, StopEOS},
		"its own end, asked":     {Outcome{Reason: FinishStop, Stop: Stop{Reason: StopEOS}}, StopEOS},
		"a stop string":          {Outcome{Reason: FinishStop, Stop: Stop{StopString, "x"}}, StopString},
		"calls":                  {Outcome{Reason: FinishToolCalls, Stop: Stop{Reason: StopEOS}}, StopToolCalls},
		"the limit":              {Outcome{Reason: FinishLength, Usage: short}, StopMaxTokens},
		"the context":            {Outcome{Reason: FinishLength, Usage: full}, StopContext},
		"the context, asked":     {Outcome{Reason: FinishLength, Usage: full, Stop: Stop{Reason: StopMaxTokens}}, StopContext},
		"a context that shifted": {Outcome{Reason: FinishLength, Usage: short, Stop: Stop{Reason: StopContext}}, StopContext},
		"full, but at its end":   {Outcome{Reason: FinishStop, Usage: full}, StopEOS},
		"a failure":              {Outcome{Stop: Stop{Reason: StopFailed}}, StopFailed},
	} {
		if got := tt.o.StopReason(100); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestOutcome_Add: the prompt counts once, what is generated adds up, and the rate is that of one answer.
func TestOutcome_Add(t *testing.T) {
	t.Parallel()
	var total Outcome
	total.add(&Outcome{Reason: FinishStop, Usage: Usage{Prompt: 9, Cached: 2, Completion: 10, Reasoning: 1}, Timings: Timings{PromptMillis: 5, PredictedMillis: 100, PredictedPerSecond: 100, DraftTokens: 3, DraftAccepted: 1}})
	total.add(&Outcome{Reason: FinishLength, Usage: Usage{Prompt: 9, Cached: 8, Completion: 60, Reasoning: 2}, Timings: Timings{PromptMillis: 3, PredictedMillis: 300, PredictedPerSecond: 200, DraftTokens: 4, DraftAccepted: 2}})
	want := Outcome{Reason: FinishStop, Usage: Usage{Prompt: 9, Cached: 2, Completion: 70, Reasoning: 3}, Timings: Timings{PromptMillis: 3, PredictedMillis: 400, PredictedPerSecond: 175, DraftTokens: 7, DraftAccepted: 3}}
	if diff := cmp.Diff(want, total); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
