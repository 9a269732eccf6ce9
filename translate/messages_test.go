package translate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMessages(t *testing.T) {
	t.Parallel()
	says := func(role Role, texts ...string) Item {
		item := Item{Kind: ItemMessage, Role: role}
		for _, text := range texts {
			item.Parts = append(item.Parts, Part{Text: text})
		}
		return item
	}
	thinks := Item{Kind: ItemReasoning, Parts: []Part{{Text: "Hm."}}}
	const hi, hello, bye = `{"role":"user","content":"Hi"}`, `{"role":"assistant","content":"Hello."}`, `{"role":"user","content":"Bye"}`
	for name, tt := range map[string]struct {
		items []Item
		want  string
	}{
		"nothing":     {nil, `[]`},
		"a beginning": {[]Item{says(RoleUser, "Hi")}, `[` + hi + `]`},
		"a conversation": {
			[]Item{says(RoleUser, "Hi"), thinks, says(RoleAssistant, "Hello."), says(RoleUser, "Bye")}, `[` + hi + `,` + hello + `,` + bye + `]`,
		},
		"an inherited system prompt": {
			[]Item{SystemItem("S"), says(RoleUser, "Hi"), says(RoleAssistant, "Hello."), says(RoleUser, "Bye")},
			`[{"role":"system","content":"S"},` + hi + `,` + hello + `,` + bye + `]`,
		},
		"one that is replaced": {
			[]Item{SystemItem("S"), says(RoleUser, "Hi"), says(RoleAssistant, "Hello."), SystemItem("T"), says(RoleUser, "Bye")},
			`[{"role":"system","content":"T"},` + hi + `,` + hello + `,` + bye + `]`,
		},
		"one that is taken away": {
			[]Item{SystemItem("S"), says(RoleUser, "Hi"), says(RoleAssistant, "Hello."), SystemItem(""), says(RoleUser, "Bye")},
			`[` + hi + `,` + hello + `,` + bye + `]`,
		},
		"an answer of nothing": {[]Item{says(RoleUser, "Hi"), says(RoleUser, "Bye")}, `[` + hi + `,{"role":"assistant","content":""},` + bye + `]`},
		"an answer of thoughts": {
			[]Item{says(RoleUser, "Hi"), thinks, says(RoleUser, "Bye")}, `[` + hi + `,{"role":"assistant","content":""},` + bye + `]`,
		},
		"a new system prompt in between": {
			[]Item{says(RoleUser, "Hi"), SystemItem("T"), says(RoleUser, "Bye")},
			`[{"role":"system","content":"T"},` + hi + `,{"role":"assistant","content":""},` + bye + `]`,
		},
		"several texts": {[]Item{says(RoleUser, "a", `b"`)}, `[{"role":"user","content":"a\nb\""}]`},
		"images": {
			[]Item{{Kind: ItemMessage, Role: RoleUser, Parts: []Part{{Text: "Say:"}, {Image: &Image{Type: "image/png", Data: []byte{0, 1, 2}}}, {Text: "!"}}}},
			`[{"role":"user","content":[{"type":"text","text":"Say:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}},{"type":"text","text":"!"}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, string(appendMessages(nil, tt.items))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
