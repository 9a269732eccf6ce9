package responses

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// randomEvents returns events in any order, as no engine sends them.
func randomEvents(seed uint64) []translate.Event {
	r := rand.New(rand.NewPCG(seed, 7))
	index := func() int { return r.IntN(3) }
	texts := []string{"", "a", " ", "{}", `{"x":1}`, `{"x":`, "é\n", "<&>", "\xff"}
	text := func() string { return texts[r.IntN(len(texts))] }
	provider := func() (p translate.Provider) {
		if r.IntN(2) == 0 {
			p.Server = "maths"
		}
		return p
	}
	makers := []func() translate.Event{
		func() translate.Event { return translate.Round{Number: 1 + r.IntN(3)} },
		func() translate.Event { return translate.Text{Text: text()} },
		func() translate.Event { return translate.Text{Text: text()} },
		func() translate.Event { return translate.Reasoning{Text: text()} },
		func() translate.Event {
			return translate.CallStart{Index: index(), ID: strings.Repeat("c", r.IntN(3)), Name: "f", Provider: provider()}
		},
		func() translate.Event { return translate.CallArgs{Index: index(), Text: text()} },
		func() translate.Event { return translate.CallArgs{Index: index(), Text: text()} },
		func() translate.Event { return translate.CallDone{Index: index()} },
		func() translate.Event {
			return translate.CallResult{Index: index(), Output: text(), IsError: r.IntN(2) == 0}
		},
		func() translate.Event {
			return translate.CallInvalid{Index: index(), ID: "c", Name: "f", Reason: text(), ArgumentsBad: r.IntN(2) == 0}
		},
		func() translate.Event { return translate.Trouble{Err: translate.BrokenOff()} },
		func() translate.Event { return translate.ToolList{Server: "maths", Tools: json.RawMessage(`[]`)} },
		func() translate.Event { return translate.ToolList{Server: "maths", Err: translate.BrokenOff()} },
		func() translate.Event {
			return translate.Logprobs{Content: json.RawMessage(`[{"token":"a","logprob":-1,"top_logprobs":[]}]`)}
		},
		func() translate.Event { return translate.Prompt{Total: 5} },
		func() translate.Event { return translate.Usage{Prompt: 3, Completion: 2} },
		func() translate.Event {
			return translate.Finish{Reason: []translate.FinishReason{"stop", "length", "tool_calls"}[r.IntN(3)]}
		},
		func() translate.Event { return translate.Fault{Err: translate.BrokenOff()} },
	}
	events := make([]translate.Event, r.IntN(30))
	for i := range events {
		events[i] = makers[r.IntN(len(makers))]()
	}
	return events
}

// checkRandom checks the stream of a random answer, and that its items say the same.
func checkRandom(t *testing.T, seed uint64) {
	t.Helper()
	tr := transcript{events: randomEvents(seed), queued: seed%3 == 0, cancel: seed%5 == 0}
	if seed%4 == 0 {
		tr.request = `{"input":"Hi","include":["message.output_text.logprobs"],"parallel_tool_calls":false}`
	}
	if seed%7 == 0 && !tr.cancel {
		tr.err = translate.BrokenOff()
	}
	s, stream := tr.stream(t)
	if problems := testkit.ResponsesProblems(stream); len(problems) > 0 {
		t.Fatalf("seed %d, %+v:\n%s\n%s", seed, tr.events, strings.Join(problems, "\n"), stream)
	}
	items := s.Items()
	shown := OutputItems(items)
	output := gjson.GetBytes(s.Answer.AppendBody(nil), "output").Array()
	told := make([]string, len(output))
	for i, item := range output {
		told[i] = gjson.Get(item.Raw, "@this.{id,type,status,name,arguments}").Raw
	}
	got := make([]string, len(shown))
	for i, item := range shown {
		got[i] = gjson.GetBytes(item, "@this.{id,type,status,name,arguments}").Raw
	}
	if diff := cmp.Diff(told, got); diff != "" {
		t.Fatalf("seed %d, the items (-told +stored):\n%s", seed, diff)
	}
	for _, item := range items {
		if item.Kind == translate.ItemCall && item.Provider == nil {
			items = append(items, translate.Item{Kind: translate.ItemResult, CallID: item.CallID})
		}
	}
	if body, _, err := s.Request.Upstream(items, nil, true); err != nil {
		t.Fatalf("seed %d: the next request: %v, %s", seed, err, body.Raw)
	}
}

// TestStream_AnyEvents: whatever happens to an answer, its stream is in order.
func TestStream_AnyEvents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		checkRandom(t, seed)
	}
}

func FuzzStream(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed)
	}
	f.Fuzz(checkRandom)
}

// FuzzParse checks that any request is rejected with an error for the client, or becomes valid requests to the engine, and that its
// input can be shown and sent again.
func FuzzParse(f *testing.F) {
	for _, rq := range requests {
		f.Add([]byte("{" + rq.fields + "}"))
	}
	caps := testModel
	f.Fuzz(func(t *testing.T, raw []byte) {
		body, err := jsonbody.Scan(raw)
		if err != nil {
			return
		}
		r, err := Parse(body, caps)
		if err != nil {
			if err.Status() != 400 || err.Message == "" || err.Param == "" {
				t.Fatalf("refused by %+v", err)
			}
			return
		}
		for _, first := range []bool{true, false} {
			upstream, _, err := r.Upstream(r.Input, offers(r), first)
			if err != nil {
				if err.Param != "tool_choice" && err.Param != "input" {
					t.Fatalf("the engine's request: %v", err)
				}
				continue
			}
			if len(upstream.Messages) == 0 {
				t.Fatalf("there are no messages: %s", upstream.Raw)
			}
		}
		var shown []byte
		for i, item := range InputItems(testID, r.Input) {
			if !json.Valid(item) || gjson.GetBytes(item, "id").Str == "" {
				t.Fatalf("the item %s", item)
			}
			if i > 0 {
				shown = append(shown, ',')
			}
			shown = append(shown, item...)
		}
		answer := (&Answer{ID: testID, Created: someTime, Request: r}).AppendBody(nil)
		if !json.Valid(answer) || strings.Contains(string(answer), "\n") {
			t.Fatalf("the response: %s", answer)
		}
		again := append(append([]byte(`{"previous_response_id":"resp_1","input":[`), shown...), "]}"...)
		body, err = jsonbody.Scan(again)
		if err != nil {
			t.Fatalf("the items can't be sent again: %v\n%s", err, again)
		}
		if _, err := Parse(body, request.Caps{Vision: true}); err != nil && !strings.Contains(err.Message, "is required") {
			t.Fatalf("the items can't be sent again: %v\n%s", err, again)
		}
	})
}
