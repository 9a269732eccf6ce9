package openai

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/translate/request"
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
		if got := request.PromptBytes(scanned(t, body)); got != want {
			t.Errorf("%d bytes in %s, want %d", got, body, want)
		}
	}
	for body, want := range map[string]int{
		`{"prompt":" abc "}`:       5,
		`{"prompt":["a","abcd"]}`:  4,
		`{"prompt":[1,2,3,4,5,6]}`: 0,
	} {
		ask, err := ParseCompletion(scanned(t, body), request.Caps{})
		if err != nil {
			t.Fatal(err)
		}
		if got := ask.PromptBytes(); got != want {
			t.Errorf("%d bytes in %s, want %d", got, body, want)
		}
	}
}
