package request

import (
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// TestMessagesOf_Arguments: what isn't an object would make an engine refuse the conversation.
func TestMessagesOf_Arguments(t *testing.T) {
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
		messages := MessagesOf([]translate.Item{{Kind: translate.ItemCall, Tool: "f", Args: []byte(args)}})
		if got := gjson.GetBytes(messages.Array(), "0.tool_calls.0.function.arguments").Str; got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
