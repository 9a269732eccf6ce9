package translate_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

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
		chat, bad := openai.ParseChat(body, capsOf(request.Caps{}))
		if bad != nil {
			t.Fatal(bad)
		}
		var sent strings.Builder
		for _, piece := range (llamaserver.Wire{}).Chat(body, chat, 0).Body {
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
