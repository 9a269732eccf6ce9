package request

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Messages of the conversations below.
const (
	sys, sys2, dev = `{"role":"system","content":"S"}`, `{"role":"system","content":"T"}`, `{"role":"developer","content":"D"}`
	ask, more      = `{"role":"user","content":"A"}`, `{"role":"user","content":"B"}`
	inParts        = `{"role":"user","content":[{"type":"text","text":"P"},{"type":"text","text":"Q"}]}`
	image          = `{"role":"user","content":[{"type":"text","text":"P"},{"type":"image_url","image_url":{"url":"data:,"}}]}`
	says           = `{"role":"assistant","content":"X"}`
	call           = `{"role":"assistant","content":null,"reasoning_content":"R","tool_calls":[` + call1 + `]}`
	calls          = `{"role":"assistant","content":"X","tool_calls":[` + call1 + `,` + call2 + `]}`
	call1, call2   = `{"id":"call_one1","type":"function","function":{"name":"f","arguments":"{\"a\":\"\\\"\"}"}}`, `{"id":"call_two2","type":"function","function":{"name":"g","arguments":"{}"}}`
	res1, res2     = `{"role":"tool","content":"1","tool_call_id":"call_one1"}`, `{"role":"tool","content":"2","tool_call_id":"call_two2"}`
	tools          = `[{"type":"function","function":{"name":"f"}}]`
)

// brief returns messages in brief: the first letter of each role, its text, its calls and the id that a result has.
func brief(messages []byte) string {
	var all []string
	for _, m := range gjson.ParseBytes(messages).Array() {
		text := m.Get("role").Str[:1] + " " + m.Get("content").Raw
		if thought := m.Get("reasoning_content"); thought.Exists() {
			text += " thought " + thought.Str
		}
		for _, c := range m.Get("tool_calls").Array() {
			text += " " + c.Get("function.name").Str + c.Get("function.arguments").Str
		}
		all = append(all, strings.ReplaceAll(strings.ReplaceAll(text, toolsAsked, "TOOLS"), `"type":"text","text":`, ""))
	}
	return strings.Join(all, "\n")
}

var toolsAsked = string(toolPrompt([]byte(tools)))

func TestArrange(t *testing.T) {
	t.Parallel()
	alternates := Template{Alternates: true, NoLateSystem: true}
	strict := Template{NoSystem: true, NoLateSystem: true, Alternates: true, NoTools: true, NoCalls: true, NoResults: true} // as Gemma's
	const textCall, textCall2 = `[TOOL_REQUEST]{\"name\": \"f\", \"arguments\": {\"a\":\"\\\"\"}}[END_TOOL_REQUEST]`, `[TOOL_REQUEST]{\"name\": \"g\", \"arguments\": {}}[END_TOOL_REQUEST]`
	const textResult, textResult2 = `[TOOL_RESULT]\n1\n[END_TOOL_RESULT]`, `[TOOL_RESULT]\n2\n[END_TOOL_RESULT]`
	for name, tt := range map[string]struct {
		takes    Template
		messages []string
		want     string
	}{
		"a system prompt":        {Template{NoSystem: true}, []string{sys, ask, says, more}, "u \"S\\n\\nA\"\na \"X\"\nu \"B\""},
		"two of them":            {Template{NoSystem: true}, []string{sys, sys2, ask}, `u "S\n\nT\n\nA"`},
		"one alone":              {Template{NoSystem: true}, []string{sys}, `u "S"`},
		"one before an answer":   {Template{NoSystem: true}, []string{sys, says, ask}, "u \"S\"\na \"X\"\nu \"A\""},
		"one before an image":    {Template{NoSystem: true}, []string{sys, image}, `u [{"S\n\nP"},{"type":"image_url","image_url":{"url":"data:,"}}]`},
		"two at the start":       {Template{NoLateSystem: true}, []string{sys, dev, ask}, "s \"S\\n\\nD\"\nu \"A\""},
		"two that are taken":     {Template{NoParts: true}, []string{sys, dev, ask}, "s \"S\"\ns \"D\"\nu \"A\""},
		"a late one":             {Template{NoLateSystem: true}, []string{sys, ask, says, sys2, more}, "s \"S\"\nu \"A\"\na \"X\"\nu \"<system>\\nT\\n</system>\\n\\nB\""},
		"a late one at the end":  {Template{NoLateSystem: true}, []string{ask, dev}, `u "A\n\n<system>\nD\n</system>"`},
		"users in a row":         {Template{NoLateSystem: true}, []string{ask, more}, "u \"A\"\nu \"B\""},
		"a late one amid users":  {Template{NoLateSystem: true}, []string{ask, dev, more}, "u \"A\\n\\n<system>\\nD\\n</system>\"\nu \"B\""},
		"joined users":           {alternates, []string{sys, ask, more, says}, "s \"S\"\nu \"A\\n\\nB\"\na \"X\""},
		"joined parts":           {alternates, []string{ask, inParts, image}, `u [{"A\n\nP"},{"Q\n\nP"},{"type":"image_url","image_url":{"url":"data:,"}}]`},
		"joined answers":         {alternates, []string{ask, says, call, res1, says, more}, "u \"A\"\na \"X\" thought R f{\"a\":\"\\\"\"}\nt \"1\"\na \"X\"\nu \"B\""},
		"an answer first":        {alternates, []string{sys, says, ask}, "s \"S\"\nu \"\"\na \"X\"\nu \"A\""},
		"a result, then a user":  {alternates, []string{ask, call, res1, more}, "u \"A\"\na \"\" thought R f{\"a\":\"\\\"\"}\nt \"1\"\na \"\"\nu \"B\""},
		"results and a reminder": {alternates, []string{ask, calls, res1, res2, dev, more}, "u \"A\"\na \"X\" f{\"a\":\"\\\"\"} g{}\nt \"1\"\nt \"2\"\na \"\"\nu \"<system>\\nD\\n</system>\\n\\nB\""},
		"a loop":                 {alternates, []string{ask, call, res1, call, res1, says, more}, "u \"A\"\na \"\" thought R f{\"a\":\"\\\"\"}\nt \"1\"\na \"\" thought R f{\"a\":\"\\\"\"}\nt \"1\"\na \"X\"\nu \"B\""},
		"results":                {Template{NoResults: true}, []string{ask, calls, res1, res2, more}, "u \"A\"\na \"X\" f{\"a\":\"\\\"\"} g{}\nu \"" + textResult + `\n\n` + textResult2 + `\n\nB"`},
		"calls":                  {Template{NoCalls: true}, []string{ask, calls, res1, res2, says}, "u \"A\"\na \"X\\n" + textCall + `\n` + textCall2 + "\"\nu \"" + textResult + `\n\n` + textResult2 + "\"\na \"X\""},
		"single calls":           {Template{SingleCalls: true}, []string{ask, calls, res1, res2, more}, "u \"A\"\na \"X\" f{\"a\":\"\\\"\"}\nt \"1\"\na \"\" g{}\nt \"2\"\nu \"B\""},
		"single calls, results in another order": {
			Template{SingleCalls: true}, []string{ask, calls, res2, res1, more}, "u \"A\"\na \"X\" g{}\nt \"2\"\na \"\" f{\"a\":\"\\\"\"}\nt \"1\"\nu \"B\"",
		},
		"single calls, no results": {
			Template{SingleCalls: true}, []string{ask, calls, more}, "u \"A\"\na \"X\" f{\"a\":\"\\\"\"}\na \"\" g{}\nu \"B\"",
		},
		"tools":                       {Template{NoTools: true}, []string{sys, ask, call, res1}, "s \"S\\n\\nTOOLS\"\nu \"A\"\na \"" + textCall + "\" thought R\nu \"" + textResult + `"`},
		"tools without a system":      {Template{NoTools: true}, []string{ask}, "s \"TOOLS\"\nu \"A\""},
		"tools of a strict one":       {strict, []string{sys, ask, calls, res1, res2, dev, more}, "u \"S\\n\\nTOOLS\\n\\nA\"\na \"X\\n" + textCall + `\n` + textCall2 + "\"\nu \"" + textResult + `\n\n` + textResult2 + `\n\n<system>\nD\n</system>\n\nB"`},
		"parts":                       {Template{NoParts: true}, []string{inParts, image}, "u \"P\\nQ\"\nu [{\"P\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:,\"}}]"},
		"parts that are taken":        {alternates, []string{inParts}, `u [{"P"},{"Q"}]`},
		"a beginning of the answer":   {strict, []string{ask, says}, "u \"TOOLS\\n\\nA\"\na \"X\""},
		"nothing but tools":           {strict, nil, `u "TOOLS"`},
		"what a template takes as is": {Template{SingleCalls: true}, []string{sys, dev, ask, more, says, says, call, res1, inParts}, "s \"S\"\ns \"D\"\nu \"A\"\nu \"B\"\na \"X\"\na \"X\"\na \"\" thought R f{\"a\":\"\\\"\"}\nt \"1\"\nu [{\"P\"},{\"Q\"}]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := jsonbody.Scan([]byte(`{"messages":[` + strings.Join(tt.messages, ",") + `],"tools":` + tools + `}`))
			if err != nil {
				t.Fatal(err)
			}
			var e jsonbody.Edit
			Arrange(body, &e, &tt.takes)
			if diff := cmp.Diff(strings.Split(tt.want, "\n"), strings.Split(brief(e.Value(body, "messages")), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if hasTools := e.Value(body, "tools") != nil; hasTools == tt.takes.NoTools {
				t.Errorf("the engine gets tools: %v", hasTools)
			}
		})
	}
}

// TestArrange_Order: whatever order messages come in, a template that refuses what isn't in its own gets nothing else, and what they say in order.
func TestArrange_Order(t *testing.T) {
	t.Parallel()
	kinds := []string{
		`{"role":"system","content":"#N"}`, `{"role":"user","content":"#N"}`, `{"role":"assistant","content":"#N"}`,
		`{"role":"assistant","content":"#N","tool_calls":[` + call1 + `]}`, `{"role":"tool","content":"#N","tool_call_id":"call_one1"}`,
	}
	const length = 5
	said := regexp.MustCompile(`#\d`)
	for number := range 5 * 5 * 5 * 5 * 5 {
		var order []string
		for i := range length {
			order = append(order, strings.ReplaceAll(kinds[number%5], "N", strconv.Itoa(i)))
			number /= 5
		}
		body, err := jsonbody.Scan([]byte(`{"messages":[` + strings.Join(order, ",") + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		for name, takes := range map[string]Template{
			"calls":    {Alternates: true, NoLateSystem: true},
			"no calls": {Alternates: true, NoSystem: true, NoLateSystem: true, NoCalls: true, NoResults: true},
		} {
			var e jsonbody.Edit
			Arrange(body, &e, &takes)
			made := e.Value(body, "messages")
			if got := strings.Join(said.FindAllString(string(made), -1), ""); got != "#0#1#2#3#4" || !takes.takes(made) {
				t.Fatalf("%s: %v became %s", name, order, made)
			}
		}
	}
}

// takes reports whether a template that is strict about the order of turns takes messages. Calls and their results aren't turns, if it takes them.
func (t *Template) takes(messages []byte) bool {
	turns := 0
	for i, m := range gjson.ParseBytes(messages).Array() {
		role := m.Get("role").Str
		switch {
		case role == "system" && i == 0 && !t.NoSystem:
		case role == "tool" && !t.NoResults, m.Get("tool_calls").Exists() && !t.NoCalls:
		case role == "user" && turns%2 == 0, role == "assistant" && turns%2 == 1 && !m.Get("tool_calls").Exists():
			turns++
		default:
			return false
		}
	}
	return true
}
