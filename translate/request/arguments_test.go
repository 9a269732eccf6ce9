package request

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// TestAppendArguments: what isn't an object would make an engine refuse the conversation.
func TestAppendArguments(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"a":1}`:            `{"a":1}`,
		`"{\"a\": \"<\"}"`:   `{"a": "<"}`,
		`"{\"a\":"`:          `{}`,
		`""`:                 `{}`,
		``:                   `{}`,
		`[1]`:                `{}`,
		`"[\"{}\"]"`:         `{}`,
		`"\"{}\""`:           `{}`,
		`"{\"a\":1}{\"b\"}"`: `{}`,
	} {
		if got := jsonbody.Unquote(appendArguments(nil, []byte(args))); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
