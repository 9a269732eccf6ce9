package translate_test

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/request"
)

// TestAnswer_IsWhatWasPromised: what the engine can't be held to is checked when the answer is complete, in whatever pieces it comes.
func TestAnswer_IsWhatWasPromised(t *testing.T) {
	t.Parallel()
	const percent = `{"type":"object","properties":{"p":{"type":"number","maximum":1}},"required":["p"]}`
	tools := []request.Tool{{Name: "e", Parameters: percent}}
	forced, strict, format, either := &request.Chat{}, &request.Chat{}, &request.Chat{}, &request.Chat{}
	if _, err := forced.Force(tools); err != nil {
		t.Fatal(err)
	}
	for _, chat := range []*request.Chat{format, either} {
		if _, err := chat.Format(gjson.Parse(percent), "response_format"); err != nil {
			t.Fatal(err)
		}
	}
	if err := either.Offer(tools, "{}"); err != nil {
		t.Fatal(err)
	}
	if err := strict.Offer([]request.Tool{{Name: "e", Parameters: percent, IsStrict: true}}, ""); err != nil {
		t.Fatal(err)
	}
	stopped := *format
	stopped.Stops = []string{"7"}
	for name, tt := range map[string]struct {
		chat   *request.Chat
		pieces []string
		isKept bool
	}{
		"a call":                      {forced, []string{`{"name":"e","arguments":{"p"`, `:0.7}}`}, true},
		"a call that isn't":           {forced, []string{`{"name":"e","arguments":{"p"`, `:7}}`}, false},
		"an answer":                   {format, []string{`{"p":`, `0.7}`}, true},
		"an answer that isn't":        {format, []string{`{"p":`, `7}`}, false},
		"one in a fence":              {format, []string{"```json\n{\"p\":", "7}\n```"}, false},
		"the end of one":              {format, []string{`7}`}, true},
		"one that a stop string ends": {&stopped, []string{`{"p":`, `7}`}, true},
		"an answer with tools":        {either, []string{`{"p":`, `0.7}`}, true},
		"one with tools that isn't":   {either, []string{`{"p":`, `7}`}, false},
		"a call that was offered":     {either, []string{`{"name":"e","arguments":{"p":7}}`}, true},
		"a text beside a strict tool": {strict, []string{`{"p":7}`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1 << 20, 7} {
				got, _ := decodedFor(t, tt.chat, spoken(tt.pieces...), size)
				isKept := strings.Contains(got, "finish: ") && !strings.Contains(got, "fault")
				saysWhy := strings.Contains(got, "doesn't match the schema of the request: at '/p': maximum: got 7, want 1.")
				if isKept != tt.isKept || saysWhy == tt.isKept {
					t.Errorf("in pieces of %d:\n%s", size, got)
				}
			}
		})
	}
}
