package request

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
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
	calls := func(id, tool, args string) translate.Item {
		return translate.Item{Kind: translate.ItemCall, CallID: id, Tool: tool, Args: []byte(args)}
	}
	invalid := func(id, tool, args, reason string) translate.Item {
		return translate.Item{Kind: translate.ItemInvalid, CallID: id, Tool: tool, Args: []byte(args), Parts: []translate.Part{{Text: reason}}}
	}
	result := func(id, text string) translate.Item {
		return translate.Item{Kind: translate.ItemResult, CallID: id, Parts: []translate.Part{{Text: text}}}
	}
	called := func(id, tool, args string) string {
		return `{"id":"` + id + `","type":"function","function":{"name":"` + tool + `","arguments":"` + args + `"}}`
	}
	returned := func(id, text string) string {
		return `{"role":"tool","content":"` + text + `","tool_call_id":"` + id + `"}`
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
		"calls of one round, then of another": {
			[]translate.Item{
				says(translate.RoleUser, "Hi"), thinks, says(translate.RoleAssistant, "Hello."), calls("a", "read", `{"p":1}`), invalid("b", "fly", "", "No fly."), result("a", "one"), result("b", "No fly."),
				calls("c", "read", `{}`), result("c", "two"), says(translate.RoleAssistant, "Done."), says(translate.RoleUser, "Bye"),
			},
			`[` + hi + `,{"role":"assistant","content":"Hello.","tool_calls":[` + called("a", "read", `{\"p\":1}`) + `,` + called("b", "fly", `{}`) + `]},` +
				returned("a", "one") + `,` + returned("b", "No fly.") + `,{"role":"assistant","content":"","tool_calls":[` + called("c", "read", `{}`) + `]},` + returned("c", "two") +
				`,{"role":"assistant","content":"Done."},` + bye + `]`,
		},
		"a loop that goes on": {
			[]translate.Item{says(translate.RoleUser, "Hi"), thinks, calls("a", "read", `{}`), result("a", "one"), thinks, invalid("b", "read", `{"x":2}`, "No x."), result("b", "No x.")},
			`[` + hi + `,{"role":"assistant","content":"","reasoning_content":"Hm.","tool_calls":[` + called("a", "read", `{}`) + `]},` + returned("a", "one") +
				`,{"role":"assistant","content":"","reasoning_content":"Hm.","tool_calls":[` + called("b", "read", `{\"x\":2}`) + `]},` + returned("b", "No x.") + `]`,
		},
		"a call that was never made": {
			[]translate.Item{says(translate.RoleUser, "Hi"), calls("", "read", ``), says(translate.RoleUser, "Bye")},
			`[` + hi + `,{"role":"assistant","content":"","tool_calls":[` + called("call_0", "read", `{}`) + `]},` + returned("call_0", "The call was not made.") + `,` + bye + `]`,
		},
		"a result with an image": {
			[]translate.Item{calls("a", "draw", `{}`), {Kind: translate.ItemResult, CallID: "a", Parts: []translate.Part{{Text: "See:"}, {Media: &translate.Media{Type: "image/png", Data: []byte{0, 1, 2}}}}}},
			`[{"role":"assistant","content":"","tool_calls":[` + called("a", "draw", `{}`) + `]},{"role":"tool","content":[{"type":"text","text":"See:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}}],"tool_call_id":"a"}]`,
		},
		"several texts": {[]translate.Item{says(translate.RoleUser, "a", `b"`)}, `[{"role":"user","content":"a\nb\""}]`},
		"images": {
			[]translate.Item{{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: []translate.Part{{Text: "Say:"}, {Media: &translate.Media{Type: "image/png", Data: []byte{0, 1, 2}}}, {Text: "!"}}}},
			`[{"role":"user","content":[{"type":"text","text":"Say:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}},{"type":"text","text":"!"}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := MessagesOf(tt.items)
			if diff := cmp.Diff(tt.want, string(made.Array())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkMade(t, &made)
		})
	}
}

// checkMade checks that a body is found to be what its writer says that it is.
func checkMade(t *testing.T, messages *Messages) {
	t.Helper()
	made, err := messages.Body([]byte(`{"a":[1]}`), []byte(`{}`), []byte(`{"b":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	whole := new(jsonbody.Edit).Apply(made)
	if string(whole) != string(made.Raw) {
		t.Fatalf("%s, wanted %s", whole, made.Raw)
	}
	scanned, err := jsonbody.Scan(whole)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(found(scanned), found(made)); diff != "" {
		t.Errorf("%s (-scanned +made):\n%s", made.Raw, diff)
	}
}

// found returns the fields and the messages of a body.
func found(body *jsonbody.Body) (all []string) {
	for name, value := range body.All() {
		all = append(all, string(name)+"="+string(value), string(body.Value(string(name))))
	}
	for i, m := range body.Messages {
		all = append(all, fmt.Sprintf("%s, plain: %t", body.Message(i), m.Plain))
	}
	return all
}

// Long texts of a client's body are in the engine's as the client has quoted them.
func TestMessages_LongTexts(t *testing.T) {
	t.Parallel()
	long := []byte(strings.Repeat(`a\n\"b\"`, LongText))
	image := &translate.Media{Type: "image/png", Data: []byte{0, 1, 2}}
	arguments := jsonbody.AppendString(nil, `{"a":"`+string(long)+`"}`)
	says := func(role translate.Role, parts ...translate.Part) translate.Item {
		return translate.Item{Kind: translate.ItemMessage, Role: role, Parts: parts}
	}
	items := []translate.Item{
		says(translate.RoleSystem, translate.Part{Quoted: long}),
		says(translate.RoleUser, translate.Part{Quoted: long}, translate.Part{Text: "b\n"}, translate.Part{Quoted: long}),
		says(translate.RoleAssistant, translate.Part{Quoted: long}),
		{Kind: translate.ItemCall, CallID: "c", Tool: "f", Args: arguments, AreObject: true},
		{Kind: translate.ItemResult, CallID: "c", Parts: []translate.Part{{Quoted: long}}},
		says(translate.RoleUser, translate.Part{Media: image}, translate.Part{Quoted: long}, translate.Part{Media: image}),
	}
	made, settled := MessagesOf(items), MessagesOf(translate.Settled(items))
	if diff := cmp.Diff(string(settled.Array()), string(made.Array())); diff != "" {
		t.Errorf("(-settled +made):\n%s", diff)
	}
	checkMade(t, &made)
	checkMade(t, &settled)
}

func TestTextPart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text     string
		isQuoted bool
	}{{`a\n`, true}, {`\u00e9`, false}, {`\/`, false}, {"\u2028", false}} {
		value := []byte(`"` + strings.Repeat(tt.text, LongText) + `"`)
		part := TextPart(value)
		if (part.Quoted != nil) != tt.isQuoted || part.Plain() != jsonbody.Unquote(value) {
			t.Errorf("%q: %.20q, %.20q", tt.text, part.Text, part.Quoted)
		}
		if short := TextPart([]byte(`"` + tt.text + `"`)); short.Quoted != nil {
			t.Errorf("%q is quoted though it's short", tt.text)
		}
	}
}

func TestMessages_LongNames(t *testing.T) {
	t.Parallel()
	for _, size := range []int{jsonbody.MaxNameLength - 2, jsonbody.MaxNameLength - 1} {
		id := jsonbody.AppendString(nil, strings.Repeat("a", size))
		m := NewMessages(0)
		m.BeginResult(id)
		m.Parts(nil)
		m.End()
		m.Begin("function")
		m.Parts(nil)
		m.Member("name", id)
		m.End()
		m.Begin(translate.RoleUser)
		m.Parts([]translate.Part{{Quoted: []byte(`a\\n`)}, {Media: &translate.Media{Type: "image/png"}}})
		m.End()
		checkMade(t, &m)
	}
}

// What a body has besides its messages is scanned.
func TestMessages_OtherFields(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{`{"a":1,"a":2}`, `{"messages":[]}`, `{"a":}`, `{"a":{"b":1,"b":1}}`, "{\"a\":\"\xff\"}", `{"a":1}}`} {
		m := NewMessages(0)
		if body, err := m.Body([]byte(fields)); err == nil || body != nil {
			t.Errorf("%s: %s", fields, body.Raw)
		}
	}
}
