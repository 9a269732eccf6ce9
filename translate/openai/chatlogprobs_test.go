package openai

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
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
			c.Add(translate.Logprobs{Content: []byte(gjson.Get(tt.told, "content").Raw)})
			c.Add(translate.Finish{Reason: translate.FinishStop})
			b := ChatBody{OnlyChosen: tt.onlyChosen}
			if got := gjson.GetBytes(b.AppendBody(nil, []*ChatChoice{&c}), "choices.0.logprobs").Raw; got != tt.want {
				t.Errorf("in one piece: %s", got)
			}
		})
	}
}

// TestOutcome_ReasonsAgree: what finish_reason says and what stop_reason says is the same.
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
