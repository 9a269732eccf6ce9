package request

import (
	"encoding/json"
	"testing"

	"github.com/lmcaddy/lmcaddy/translate"
)

// TestArgumentsOf: what isn't an object would make an engine refuse the conversation.
func TestArgumentsOf(t *testing.T) {
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
		if got := argumentsOf(&translate.Item{Args: json.RawMessage(args)}); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
