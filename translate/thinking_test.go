package translate_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

func TestLlamaServer_IsAskedInTheWordsOfItsTemplate(t *testing.T) {
	t.Parallel()
	args := func(text string) request.Switch { return request.Switch{Arguments: json.RawMessage(text)} }
	toggle := &request.Template{Thinking: map[string]request.Switch{"off": args(`{"thinking":false}`), "on": args(`{"thinking":true}`)}, Default: "off"}
	common := &request.Template{Thinking: map[string]request.Switch{"off": args(`{"enable_thinking":false}`), "on": args(`{"enable_thinking":true}`)}, Default: "off"}
	graded := &request.Template{Thinking: map[string]request.Switch{"low": args(`{"reasoning_effort":"low"}`), "high": args(`{"reasoning_effort":"high"}`)}, Default: "high"}
	lines := &request.Template{Thinking: map[string]request.Switch{"off": {System: "/no_think"}, "on": {}}, Default: "on"}
	const user = `{"role":"user","content":"Hi"}`
	for name, tt := range map[string]struct {
		template *request.Template
		messages string
		fields   string
		want     string
	}{
		"unknown":              {nil, user, `,"reasoning_effort":"none"`, `{"messages":[` + user + `],"reasoning_effort":"none"`},
		"no wish":              {toggle, user, ``, `{"messages":[` + user + `]`},
		"off":                  {toggle, user, `,"reasoning_effort":"none"`, `{"messages":[` + user + `],"chat_template_kwargs":{"thinking":false}`},
		"off, by the switch":   {toggle, user, `,"chat_template_kwargs":{"enable_thinking":false}`, `{"messages":[` + user + `],"chat_template_kwargs":{"thinking":false}`},
		"an effort":            {toggle, user, `,"reasoning_effort":"low"`, `{"messages":[` + user + `],"chat_template_kwargs":{"thinking":true}`},
		"its own values first": {toggle, user, `,"reasoning_effort":"high","chat_template_kwargs":{"thinking":false,"x":[1]}`, `{"messages":[` + user + `],"chat_template_kwargs":{"thinking":false,"x":[1]}`},
		"its own values":       {toggle, user, `,"chat_template_kwargs":{"thinking":true}`, `{"messages":[` + user + `],"chat_template_kwargs":{"thinking":true}`},
		"on, by another's switch": {
			common, user, `,"chat_template_kwargs":{"thinking":true}`, `{"messages":[` + user + `],"chat_template_kwargs":{"thinking":true,"enable_thinking":true}`,
		},
		"on, to whom efforts are known": {
			graded, user, `,"chat_template_kwargs":{"enable_thinking":true}`, `{"messages":[` + user + `],"chat_template_kwargs":{"reasoning_effort":"high"}`,
		},
		"an effort beside on": {
			graded, user, `,"chat_template_kwargs":{"enable_thinking":true},"reasoning_effort":"low"`, `{"messages":[` + user + `],"chat_template_kwargs":{"reasoning_effort":"low"}`,
		},
		"off that isn't offered": {graded, user, `,"reasoning_effort":"none"`, `{"messages":[` + user + `],"chat_template_kwargs":{"reasoning_effort":"low"}`},
		"nothing is offered":     {&request.Template{}, user, `,"chat_template_kwargs":{"enable_thinking":false}`, `{"messages":[` + user + `],"chat_template_kwargs":{"enable_thinking":false}`},
		"a line":                 {lines, user, `,"reasoning_effort":"none"`, `{"messages":[{"role":"system","content":"/no_think"},` + user + `]`},
		"a line after the system message": {
			lines, `{"role":"system","content":"Be \"brief\"."},` + user, `,"reasoning_effort":"none"`,
			`{"messages":[{"role":"system","content":"Be \"brief\".\n/no_think"},` + user + `]`,
		},
		"a line after the developer's message": {
			lines, `{"role":"developer","content":"Be brief."},` + user, `,"reasoning_effort":"none"`,
			`{"messages":[{"role":"developer","content":"Be brief.\n/no_think"},` + user + `]`,
		},
		"a line after parts": {
			lines, `{"role":"system","content":[{"type":"text","text":"Be brief."}]},` + user, `,"reasoning_effort":"none"`,
			`{"messages":[{"role":"system","content":[{"type":"text","text":"Be brief."},{"type":"text","text":"\n/no_think"}]},` + user + `]`,
		},
		"no line": {lines, user, `,"reasoning_effort":"high"`, `{"messages":[` + user + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caps := request.Caps{Template: tt.template}
			if tt.template != nil {
				caps.Reasoning = tt.template.Reasoning()
			}
			body := testkit.Scan(t, `{"messages":[`+tt.messages+`]`+tt.fields+`}`)
			unknown, err := openai.ParseChat(body, request.Caps{}) // the first request is parsed before the model is loaded
			if err != nil {
				t.Fatal(err)
			}
			known, err := openai.ParseChat(body, caps)
			if err != nil {
				t.Fatal(err)
			}
			engine := llamaserver.Wire{}.For(&caps)
			for _, chat := range []*request.Chat{unknown, known} {
				if name == "nothing is offered" && chat == known {
					continue
				}
				sent := bytes.Join(engine.Chat(body, chat, 0).Body, nil)
				if want := tt.want + `,"stream":true`; !bytes.HasPrefix(sent, []byte(want)) {
					t.Errorf("%s\nwant %s…", sent, want)
				}
				counted := engine.(wire.Counter).Count(body, chat)
				if !bytes.Equal(bytes.Join(counted.Body, nil), sent) {
					t.Errorf("what is counted isn't what is sent: %s", counted.Body)
				}
			}
		})
	}
}

// TestLlamaServer_ThinkingHasABudget where the template has no levels, or the client gives one, and leaves room for the answer.
func TestLlamaServer_ThinkingHasABudget(t *testing.T) {
	t.Parallel()
	toggle := &request.Template{Thinking: map[string]request.Switch{"off": {}, "on": {}}, Default: "on"}
	levels := &request.Template{Thinking: map[string]request.Switch{"low": {}, "high": {}}, Default: "low"}
	for _, tt := range []struct {
		template     *request.Template
		fields, want string
	}{
		{toggle, ``, ""},
		{toggle, `,"reasoning_effort":"none"`, ""},
		{toggle, `,"reasoning_effort":"minimal"`, "1024"},
		{toggle, `,"reasoning_effort":"medium","max_tokens":-1`, "8192"},
		{toggle, `,"reasoning_effort":"max","max_tokens":40000`, "24576"},
		{toggle, `,"reasoning_effort":"high","chat_template_kwargs":{"enable_thinking":false}`, ""},
		{toggle, `,"reasoning_effort":"high","max_tokens":100`, "75"},
		{toggle, `,"reasoning_effort":"high","max_completion_tokens":40,"max_tokens":100`, "30"},
		{toggle, `,"reasoning_effort":"high","thinking_budget_tokens":7`, "7"},
		{toggle, `,"reasoning_effort":"high","thinking_budget_tokens":-1`, "-1"},
		{toggle, `,"reasoning_effort":"high","reasoning_budget_tokens":70,"max_tokens":40`, "30"},
		{levels, `,"reasoning_effort":"high"`, ""},
		{levels, `,"thinking_budget_tokens":70,"max_tokens":1`, "1"},
		{nil, `,"reasoning_effort":"high"`, ""},
		{nil, `,"thinking_budget_tokens":70,"max_tokens":40`, "30"},
	} {
		caps := request.Caps{Template: tt.template}
		if tt.template != nil {
			caps.Reasoning = tt.template.Reasoning()
		}
		body := testkit.Scan(t, `{"messages":[{"role":"user","content":"Hi"}]`+tt.fields+`}`)
		for _, parsedBy := range []request.Caps{{}, caps} { // before the model is loaded, and after
			llamaserver.Wire{}.Describe(&parsedBy)
			chat, err := openai.ParseChat(body, parsedBy)
			if err != nil {
				t.Fatal(err)
			}
			sent := gjson.ParseBytes(bytes.Join(llamaserver.Wire{}.For(&caps).Chat(body, chat, 0).Body, nil))
			if got := sent.Get("thinking_budget_tokens").Raw + sent.Get("reasoning_budget_tokens").Raw; got != tt.want {
				t.Errorf("%s: %q, want %q", tt.fields, got, tt.want)
			}
		}
	}
}

func TestLlamaServer_EndsAThoughtThatThePromptBegins(t *testing.T) {
	t.Parallel()
	template := &request.Template{
		Thinking: map[string]request.Switch{"off": {Arguments: json.RawMessage(`{"thinking_budget":0}`)}, "on": {}}, Default: "on", OffBudget: new(1),
	}
	engine := llamaserver.Wire{}.For(&request.Caps{Template: template})
	for fields, want := range map[string]string{
		``: "", `,"thinking_budget_tokens":9`: "9", `,"reasoning_effort":"none"`: "1", `,"reasoning_effort":"none","reasoning_budget_tokens":9,"thinking_budget_tokens":9`: "1",
	} {
		body := testkit.Scan(t, `{"messages":[{"role":"user","content":"Hi"}]`+fields+`}`)
		chat, err := openai.ParseChat(body, request.Caps{})
		if err != nil {
			t.Fatal(err)
		}
		sent := gjson.ParseBytes(bytes.Join(engine.Chat(body, chat, 0).Body, nil))
		if got := sent.Get("thinking_budget_tokens").Raw; got != want || sent.Get("reasoning_budget_tokens").Exists() {
			t.Errorf("%s: %s", fields, sent.Raw)
		}
	}
}
