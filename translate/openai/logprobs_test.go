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
			if diff := cmp.Diff(tt.want, string(appendLogprobs(nil, gjson.Get(tt.told, "content").Array(), tt.onlyChosen))); diff != "" {
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
