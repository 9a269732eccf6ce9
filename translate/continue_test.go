package translate_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/mlxlm"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// TestContinue_Chats: what was said is the beginning of the answer, and what can't be continued truthfully isn't.
func TestContinue_Chats(t *testing.T) {
	t.Parallel()
	const user = `{"role":"user","content":"hi"}`
	const begun = `"messages":[` + user + `,{"role":"assistant","content":"I say"}]`
	half := wire.Said{Text: "1 2", Usage: translate.Usage{Completion: 4}}
	thinking := wire.Said{Reasoning: "Hm\n"}
	spoken := wire.Said{Reasoning: "Hm\n", Text: "1"}
	for name, tt := range map[string]struct {
		fields string
		said   wire.Said
		path   string // of want in the request; empty: it can't go on
		want   string
	}{
		"text":                       {"", half, "messages", `[` + user + `,{"role":"assistant","content":"1 2"}]`},
		"text with quotes":           {"", wire.Said{Text: "a\"\n"}, "messages.1.content", `"a\"\n"`},
		"thinking":                   {"", thinking, "messages.1", `{"role":"assistant","content":"","reasoning_content":"Hm\n"}`},
		"thinking, then text":        {"", spoken, "messages.1", `{"role":"assistant","content":"1","reasoning_content":"Hm"}`},
		"after the client's text":    {begun, half, "messages.1", `{"role":"assistant","content":"I say1 2"}`},
		"after the client's thought": {`"messages":[` + user + `,{"role":"assistant","content":"","reasoning":"H"}]`, thinking, "messages.1.reasoning_content", `"HHm\n"`},
		"a limit":                    {`"max_tokens":10`, half, "max_tokens", `6`},
		"the limit that counts":      {`"n_predict":9,"max_tokens":100`, half, "n_predict", `5`},
		"no limit":                   {`"max_tokens":-1`, half, "max_tokens", `-1`},
		"tools":                      {`"tools":[{"type":"function","function":{"name":"f"}}]`, half, "tools.0.function.name", `"f"`},
		"words of the template":      {`"add_generation_prompt":true,"continue_final_message":false`, half, "messages.1.content", `"1 2"`},
		"a budget, after thinking":   {`"thinking_budget_tokens":5`, spoken, "messages.1.content", `"1"`},
		"a seed":                     {`"seed":7,"n":2`, half, "seed", `8`},

		"at the limit":                 {`"max_tokens":4`, half, "", ""},
		"a call":                       {"", wire.Said{Text: "1", HasCalls: true}, "", ""},
		"too much":                     {"", wire.Said{IsTooLong: true}, "", ""},
		"thinking after text":          {"", wire.Said{Text: "1", Reasoning: "2", IsMixed: true}, "", ""},
		"thinking after the client's":  {begun, thinking, "", ""},
		"a schema":                     {`"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}`, half, "", ""},
		"any object":                   {`"response_format":{"type":"json_object"}`, half, "", ""},
		"a grammar":                    {`"grammar":"root ::= \"a\""`, half, "", ""},
		"a required call":              {`"tool_choice":"required","tools":[{"type":"function","function":{"name":"f"}}]`, half, "", ""},
		"a budget, within thinking":    {`"thinking_budget_tokens":5`, thinking, "", ""},
		"thinking as text":             {`"reasoning_format":"none"`, half, "", ""},
		"a turn that isn't continued":  {begun + `,"continue_final_message":false`, half, "", ""},
		"a beginning in parts":         {`"messages":[` + user + `,{"role":"assistant","content":[{"type":"text","text":"a"}]}]`, half, "", ""},
		"a beginning with calls":       {`"messages":[` + user + `,{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}]`, half, "", ""},
		"a beginning of another's own": {`"messages":[` + user + `,{"role":"assistant","content":"a","name":"b"}]`, half, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fields := tt.fields
			if !strings.Contains(fields, `"messages"`) {
				fields = `"messages":[` + user + `],` + fields
			}
			all := capsOf(caps)
			all.RawGrammar = true
			body := testkit.Scan(t, `{`+strings.TrimSuffix(fields, ",")+`}`)
			chat, bad := openai.ParseChat(body, all)
			if bad != nil {
				t.Fatal(bad)
			}
			choice := chat.N - 1
			first := llamaserver.Wire{}.Chat(body, chat, choice)
			u, ok := llamaserver.Wire{}.Continue(body, chat, choice, &tt.said)
			if ok != (tt.path != "") {
				t.Fatalf("it goes on: %t, %s", ok, bytes.Join(u.Body, nil))
			}
			if again := (llamaserver.Wire{}).Chat(body, chat, choice); !bytes.Equal(bytes.Join(first.Body, nil), bytes.Join(again.Body, nil)) {
				t.Errorf("the first request has changed: %s", bytes.Join(again.Body, nil))
			}
			if !ok {
				return
			}
			sent := string(bytes.Join(u.Body, nil))
			if got := gjson.Get(sent, tt.path).Raw; !gjson.Valid(sent) || got != tt.want || u.Path != first.Path {
				t.Errorf("%s is %s, want %s, in %s", tt.path, got, tt.want, sent)
			}
			if gjson.Get(sent, "add_generation_prompt").Exists() || gjson.Get(sent, "continue_final_message").Exists() {
				t.Errorf("words of the template: %s", sent)
			}
		})
	}
}

func TestContinue_Texts(t *testing.T) {
	t.Parallel()
	half := wire.Said{Text: "1 \"2", Usage: translate.Usage{Completion: 4}}
	for name, tt := range map[string]struct {
		fields    string
		prompt    int
		said      wire.Said
		path      string // of want in the request; empty: it can't go on
		want      string
		candidate int
	}{
		"a text":       {`"prompt":"a\n"`, 0, half, "prompt", `"a\n1 \"2"`, 0},
		"another":      {`"prompt":["a","b"]`, 1, half, "prompt", `"b1 \"2"`, 0},
		"token ids":    {`"prompt":[1, 2 ]`, 0, half, "prompt", `[1, 2,"1 \"2"]`, 0},
		"a limit":      {`"prompt":"a","max_tokens":5`, 0, half, "n_predict", `1`, 0},
		"a candidate":  {`"prompt":"a","seed":3,"n":2`, 0, half, "seed", `4`, 1},
		"stop strings": {`"prompt":"a","stop":["b"]`, 0, half, "stop", `["b"]`, 0},

		"at the limit": {`"prompt":"a","max_tokens":4`, 0, half, "", "", 0},
		"a gap":        {`"prompt":"a","suffix":"b"`, 0, half, "", "", 0},
		"too much":     {`"prompt":"a"`, 0, wire.Said{IsTooLong: true}, "", "", 0},
		"a grammar":    {`"prompt":"a","grammar":"root ::= \"a\""`, 0, half, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := capsOf(caps)
			all.RawGrammar = true
			body := testkit.Scan(t, `{`+tt.fields+`}`)
			c, bad := openai.ParseCompletion(body, all)
			if bad != nil {
				t.Fatal(bad)
			}
			u, ok := llamaserver.Wire{}.ContinueText(body, c, tt.prompt, tt.candidate, &tt.said)
			if ok != (tt.path != "") {
				t.Fatalf("it goes on: %t, %s", ok, bytes.Join(u.Body, nil))
			}
			if sent := string(bytes.Join(u.Body, nil)); ok && gjson.Get(sent, tt.path).Raw != tt.want {
				t.Errorf("%s is %s, want %s", tt.path, gjson.Get(sent, tt.path).Raw, tt.want)
			}
		})
	}
}

// TestRepeats: it is enough that the engine probably does.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		engine wire.Engine
		fields string
		want   bool
	}{
		"temperature 0":         {llamaserver.Wire{}, `,"temperature":0`, true},
		"temperature 0.0":       {llamaserver.Wire{}, `,"temperature":0.0`, true},
		"a temperature":         {llamaserver.Wire{}, `,"temperature":0.1`, false},
		"nothing":               {llamaserver.Wire{}, ``, false},
		"a temperature of null": {llamaserver.Wire{}, `,"temperature":null`, false},
		"top_k 1":               {llamaserver.Wire{}, `,"top_k":1`, true},
		"top_k 2":               {llamaserver.Wire{}, `,"top_k":2`, false},
		"a seed":                {llamaserver.Wire{}, `,"seed":1`, true},
		"a random seed":         {llamaserver.Wire{}, `,"seed":-1`, false},
		"MLX":                   {mlxlm.Wire{}, ``, true},
		"MLX, a temperature":    {mlxlm.Wire{}, `,"temperature":0.1`, false},
		"MLX, a seed":           {mlxlm.Wire{}, `,"temperature":0.1,"seed":4`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := testkit.Scan(t, `{"prompt":"a","messages":[{"role":"user","content":"hi"}]`+tt.fields+`}`)
			chat, bad := openai.ParseChat(body, caps)
			if bad != nil {
				t.Fatal(bad)
			}
			if got := wire.Repeats(tt.engine, body, chat); got != tt.want {
				t.Errorf("a chat: %t", got)
			}
			c, bad := openai.ParseCompletion(body, caps)
			if bad != nil {
				t.Fatal(bad)
			}
			if got := wire.RepeatsText(tt.engine, body, c); got != tt.want {
				t.Errorf("a text: %t", got)
			}
		})
	}
}
