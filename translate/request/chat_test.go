package request

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// TestBlame: an error is about what the client has sent.
func TestBlame(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"a"}}]`
	const format = `"response_format":{"type":"json_object"}`
	for name, tt := range map[string]struct {
		body        string
		chat        Chat
		code, param string
		want        string // the field; empty for none
		status      int
	}{
		"a format of the client's":         {`{` + format + `}`, Chat{}, "invalid_schema", "response_format", "response_format", 400},
		"the format of a required call":    {`{` + format + `,` + tools + `}`, Chat{Forced: true}, "invalid_schema", "response_format", "tools", 400},
		"the format of a call that may be": {`{` + tools + `}`, Chat{}, "invalid_schema", "response_format", "tools", 400},
		"a grammar":                        {`{"grammar":"root"}`, Chat{}, "invalid_schema", "response_format", "grammar", 400},
		"nothing":                          {`{}`, Chat{}, "invalid_schema", "response_format", "", 500},
		"an answer, not the request":       {`{}`, Chat{}, "format_not_met", "response_format", "", 502},
		"another field":                    {`{}`, Chat{}, "invalid_value", "messages", "messages", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := jsonbody.Scan([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if got := tt.chat.Blame(body, translate.Invalid(tt.code, tt.param, "No.")); got.Param != tt.want || got.Status() != tt.status {
				t.Errorf("%d about %q: %v", got.Status(), got.Param, got)
			}
		})
	}
}
