package request

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	says := func(role translate.Role, texts ...string) translate.Item {
		item := translate.Item{Kind: translate.ItemMessage, Role: role}
		for _, text := range texts {
			item.Parts = append(item.Parts, translate.Part{Text: text})
		}
		return item
	}
	thinks := translate.Item{Kind: translate.ItemReasoning, Parts: []translate.Part{{Text: "Hm."}}}
	const hi, hello, bye = `{"role":"user","content":"Hi"}`, `{"role":"assistant","content":"Hello."}`, `{"role":"user","content":"Bye"}`
	for name, tt := range map[string]struct {
		items []translate.Item
		want  string
	}{
		"nothing":     {nil, `[]`},
		"a beginning": {[]translate.Item{says(translate.RoleUser, "Hi")}, `[` + hi + `]`},
		"a conversation": {
			[]translate.Item{says(translate.RoleUser, "Hi"), thinks, says(translate.RoleAssistant, "Hello."), says(translate.RoleUser, "Bye")}, `[` + hi + `,` + hello + `,` + bye + `]`,
		},
		"an inherited system prompt": {
			[]translate.Item{translate.SystemItem("S"), says(translate.RoleUser, "Hi"), says(translate.RoleAssistant, "Hello."), says(translate.RoleUser, "Bye")},
			`[{"role":"system","content":"S"},` + hi + `,` + hello + `,` + bye + `]`,
		},
		"one that is replaced": {
			[]translate.Item{translate.SystemItem("S"), says(translate.RoleUser, "Hi"), says(translate.RoleAssistant, "Hello."), translate.SystemItem("T"), says(translate.RoleUser, "Bye")},
			`[{"role":"system","content":"T"},` + hi + `,` + hello + `,` + bye + `]`,
		},
		"one that is taken away": {
			[]translate.Item{translate.SystemItem("S"), says(translate.RoleUser, "Hi"), says(translate.RoleAssistant, "Hello."), translate.SystemItem(""), says(translate.RoleUser, "Bye")},
			`[` + hi + `,` + hello + `,` + bye + `]`,
		},
		"an answer of nothing": {[]translate.Item{says(translate.RoleUser, "Hi"), says(translate.RoleUser, "Bye")}, `[` + hi + `,{"role":"assistant","content":""},` + bye + `]`},
		"an answer of thoughts": {
			[]translate.Item{says(translate.RoleUser, "Hi"), thinks, says(translate.RoleUser, "Bye")}, `[` + hi + `,{"role":"assistant","content":""},` + bye + `]`,
		},
		"a new system prompt in between": {
			[]translate.Item{says(translate.RoleUser, "Hi"), translate.SystemItem("T"), says(translate.RoleUser, "Bye")},
			`[{"role":"system","content":"T"},` + hi + `,{"role":"assistant","content":""},` + bye + `]`,
		},
		"several texts": {[]translate.Item{says(translate.RoleUser, "a", `b"`)}, `[{"role":"user","content":"a\nb\""}]`},
		"images": {
			[]translate.Item{{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: []translate.Part{{Text: "Say:"}, {Image: &translate.Image{Type: "image/png", Data: []byte{0, 1, 2}}}, {Text: "!"}}}},
			`[{"role":"user","content":[{"type":"text","text":"Say:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}},{"type":"text","text":"!"}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, string(MessagesOf(tt.items))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
