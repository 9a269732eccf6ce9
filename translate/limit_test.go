package translate_test

import (
	"bytes"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

func TestLimitTokens(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]int{
		``: -1, `,"max_tokens":7`: 7, `,"max_tokens":null`: -1, `,"max_completion_tokens":8,"max_tokens":7`: 8,
		`,"n_predict":-5,"max_tokens":7`: -1, `,"n_predict":3,"max_completion_tokens":4`: 3,
	} {
		body, bad := jsonbody.Scan([]byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]` + fields + `}`))
		if bad != nil {
			t.Fatal(bad)
		}
		if got := request.TokenLimit(body); got != want {
			t.Errorf("%s: %d, want %d", fields, got, want)
		}
		chat, bad := openai.ParseChat(body, capsOf(request.Caps{}))
		if bad != nil {
			t.Fatal(bad)
		}
		chat.LimitTokens(5)
		sent := gjson.ParseBytes(bytes.Join(llamaserver.Wire{}.Chat(body, chat, 0).Body, nil))
		if sent.Get("max_tokens").Raw != "5" || sent.Get("n_predict").Exists() || sent.Get("max_completion_tokens").Exists() {
			t.Errorf("%s: %s", fields, sent)
		}
	}
}
