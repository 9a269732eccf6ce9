package translate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// TestChatLogprobs: each field that OpenAI's types have is there, and no other.
func TestChatLogprobs(t *testing.T) {
	t.Parallel()
	const told = `{"content":[{"id":1,"token":"a<","bytes":[97,60],"logprob":-0.5,"top_logprobs":[{"id":1,"token":"a<","bytes":[97,60],"logprob":-0.5},{"id":2,"token":"b","logprob":null}]}]}`
	for name, tt := range map[string]struct {
		told       string
		onlyChosen bool
		want       string
	}{
		"none":            {"", false, `null`},
		"with others":     {told, false, `{"content":[{"token":"a<","logprob":-0.5,"bytes":[97,60],"top_logprobs":[{"token":"a<","logprob":-0.5,"bytes":[97,60]},{"token":"b","logprob":-9999,"bytes":null}]}],"refusal":null}`},
		"the chosen ones": {told, true, `{"content":[{"token":"a<","logprob":-0.5,"bytes":[97,60],"top_logprobs":[]}],"refusal":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, string(appendChatLogprobs(nil, []byte(tt.told), tt.onlyChosen))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.told == "" {
				return
			}
			var c ChatChoice
			c.Add(Logprobs{[]byte(gjson.Get(tt.told, "content").Raw)})
			c.Add(Finish{FinishStop})
			b := ChatBody{OnlyChosen: tt.onlyChosen}
			if got := gjson.GetBytes(b.AppendBody(nil, []*ChatChoice{&c}), "choices.0.logprobs").Raw; got != tt.want {
				t.Errorf("in one piece: %s", got)
			}
		})
	}
}

// TestParseChat_LogprobsOfTheChosenTokens: the engine tells twenty others where it is asked for no number, and nothing for 0.
func TestParseChat_LogprobsOfTheChosenTokens(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		`"logprobs":true`:                     "1 true",
		`"logprobs":true,"top_logprobs":0`:    "1 true",
		`"logprobs":true,"top_logprobs":null`: "1 true",
		`"logprobs":true,"top_logprobs":3`:    "3 false",
		`"logprobs":false`:                    " false",
	} {
		body := scanned(t, `{"messages":[{"role":"user","content":"Hi"}],`+more+`}`)
		chat, bad := ParseChat(body, Caps{})
		if bad != nil {
			t.Fatal(bad)
		}
		var sent strings.Builder
		for _, piece := range (LlamaServer{}).Chat(body, chat, 0) {
			sent.Write(piece)
		}
		got := gjson.Get(sent.String(), "top_logprobs").Raw
		if chat.OnlyChosen {
			got += " true"
		} else {
			got += " false"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
}

// TestOutcome_ReasonsAgree: what finish_reason says and what stop_reason says is the same.
func TestOutcome_ReasonsAgree(t *testing.T) {
	t.Parallel()
	call := []Event{CallStart{Name: "now", ID: "a"}, CallArgs{Text: `{}`}, CallDone{}}
	broken := []Event{CallStart{Name: "now", ID: "a"}, CallArgs{Text: `{"a`}, CallDone{}}
	for name, tt := range map[string]struct {
		events []Event
		want   string
	}{
		"a call":                         {append(call[:3:3], Finish{FinishToolCalls}), "tool_calls toolCalls"},
		"a call that is none":            {append(broken[:3:3], Finish{FinishToolCalls}), "stop eosFound"},
		"a call, and the word for texts": {append(call[:3:3], Stop{Reason: StopEOS}, Finish{FinishStop}), "tool_calls toolCalls"},
		"the end":                        {[]Event{Text{"a"}, Finish{FinishStop}}, "stop eosFound"},
		"a stop string":                  {[]Event{Text{"a"}, Stop{StopString, "b"}, Finish{FinishStop}}, "stop stopStringFound"},
		"the end, at a limit":            {[]Event{Text{"a"}, Stop{Reason: StopMaxTokens}, Finish{FinishStop}}, "stop eosFound"},
		"a limit":                        {[]Event{Text{"a"}, Stop{Reason: StopEOS}, Finish{FinishLength}}, "length maxPredictedTokensReached"},
		"the context":                    {[]Event{Text{"a"}, Stop{Reason: StopContext}, Finish{FinishLength}}, "length contextLengthReached"},
	} {
		b := ChatBody{Extra: func(o *Outcome) []byte { return []byte(`"stop_reason":"` + string(o.StopReason(100)) + `"`) }}
		var got []byte
		for _, ev := range tt.events {
			got = b.Append(got, ev)
		}
		if said := gjson.GetBytes(got, "choices.0.finish_reason").Str + " " + gjson.GetBytes(got, "stop_reason").Str; said != tt.want {
			t.Errorf("%s: %s, want %s", name, said, tt.want)
		}
	}
}
