package openai

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

func TestParseChat_Thinks(t *testing.T) {
	t.Parallel()
	const off, none = `,"chat_template_kwargs":{"enable_thinking":false}`, `,"reasoning_effort":"none"`
	for name, tt := range map[string]struct {
		reasoning []string
		fields    string
		want      bool
	}{
		"unknown":              {nil, ``, true},
		"unknown, off":         {nil, off, false},
		"unknown, no effort":   {nil, none, false},
		"unknown, both":        {nil, off + none, false},
		"unknown, an effort":   {nil, `,"reasoning_effort":"low"`, true},
		"a switch, off":        {[]string{"off", "on"}, off, false},
		"always on, off":       {[]string{"low", "high"}, off, true},
		"always on, no effort": {[]string{"low", "high"}, none, true},
		"never":                {[]string{}, ``, false},
	} {
		chat, err := ParseChat(testkit.Scan(t, `{"messages":[{"role":"user","content":"Hi"}]`+tt.fields+`}`), request.Caps{Reasoning: tt.reasoning})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if chat.Thinks != tt.want {
			t.Errorf("%s: %t", name, chat.Thinks)
		}
	}
}
