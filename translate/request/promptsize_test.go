package request

import (
	"encoding/json"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

func TestPromptBytes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"messages":[{"role":"user","content":"abc"}]}`:                                                         3,
		`{"messages":[{"role":"user","content":"  a\n\u00e4 \t"}]}`:                                              4,
		`{"messages":[{"role":"system","content":"abc"},{"role":"assistant","content":"abc"}]}`:                  0,
		`{"messages":[{"role":"tool","content":"ab"},{"role":"user","content":[{"type":"text","text":"c"},7]}]}`: 3,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,abcdef"}}]}]}`:     0,
		`{"messages":[7,{"content":"a"},{"role":"user"}]}`:                                                       0,
	} {
		if got := PromptBytes(testkit.Scan(t, body)); got != want {
			t.Errorf("%d bytes in %s, want %d", got, body, want)
		}
	}
}

func TestCompletion_PromptBytes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prompts []json.RawMessage
		want    int
	}{
		"spaces count": {[]json.RawMessage{[]byte(`" abc "`)}, 5},
		"the longest":  {[]json.RawMessage{[]byte(`"a"`), []byte(`"abcd"`), []byte(`"ab"`)}, 4},
		"tokens":       {[]json.RawMessage{[]byte(`[1,2,3,4,5,6]`)}, 0},
	} {
		c := Completion{Prompts: tt.prompts}
		if got := c.PromptBytes(); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", name, got, tt.want)
		}
	}
}
