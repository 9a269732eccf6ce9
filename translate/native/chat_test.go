package native

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

var (
	switchable = request.Caps{Reasoning: []string{"off", "on"}}
	graded     = request.Caps{Reasoning: []string{"low", "medium", "high"}}
	sighted    = request.Caps{Vision: true}
)

func TestParseChat_RefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fields      string // beside the input
		caps        request.Caps
		code, param string
		message     string // a part of it
	}{
		"no input":              {`"input":null`, request.Caps{}, "missing_required_parameter", "input", `"input" is required`},
		"a number":              {`"input":1`, request.Caps{}, "invalid_type", "input", "a string or an array, not the number 1"},
		"an object":             {`"input":{}`, request.Caps{}, "invalid_type", "input", "not an object"},
		"no items":              {`"input":[]`, request.Caps{}, "invalid_value", "input", "at least one item"},
		"what the model said":   {`"input":[{"type":"message","role":"assistant","content":"a"}]`, request.Caps{}, "invalid_value", "input[0].role", `must be "user"`},
		"a system message":      {`"input":[{"type":"text","content":"a"},{"type":"text","role":"system","content":"a"}]`, request.Caps{}, "invalid_value", "input[1].role", "system_prompt"},
		"a text for an item":    {`"input":["hi"]`, request.Caps{}, "invalid_type", "input[0]", "an object"},
		"an item of no type":    {`"input":[{"content":"hi"}]`, request.Caps{}, "missing_required_parameter", "input[0].type", "required"},
		"a type that's no text": {`"input":[{"type":1}]`, request.Caps{}, "invalid_type", "input[0].type", "a string"},
		"an unknown type":       {`"input":[{"type":"text","content":"a"},{"type":"video"}]`, request.Caps{}, "invalid_value", "input[1].type", `not "video"`},
		"a message of nothing":  {`"input":[{"type":"message"}]`, request.Caps{}, "missing_required_parameter", "input[0].content", "required"},
		"a null content":        {`"input":[{"type":"message","content":null}]`, request.Caps{}, "missing_required_parameter", "input[0].content", "required"},
		"a message of parts":    {`"input":[{"type":"message","content":[]}]`, request.Caps{}, "invalid_type", "input[0].content", "a string"},
		"an image unseen":       {`"input":[{"type":"image","data_url":"data:image/png;base64,` + testkit.Pixel + `"}]`, request.Caps{}, "unsupported_content", "input[0]", "choose a model with vision"},
		"an image of nothing":   {`"input":[{"type":"image"}]`, sighted, "missing_required_parameter", "input[0].data_url", "required"},
		"an image at a URL":     {`"input":[{"type":"image","data_url":"https://example.org/a.png"}]`, sighted, "invalid_image_url", "input[0].data_url", "base64 data URL"},

		"system_prompt":           {`"input":"hi","system_prompt":["x"]`, request.Caps{}, "invalid_type", "system_prompt", "a string"},
		"previous id's type":      {`"input":"hi","previous_response_id":7`, request.Caps{}, "invalid_type", "previous_response_id", "a string"},
		"previous id's prefix":    {`"input":"hi","previous_response_id":"chatcmpl-1"`, request.Caps{}, "invalid_value", "previous_response_id", `start with "resp_"`},
		"an empty previous id":    {`"input":"hi","previous_response_id":""`, request.Caps{}, "invalid_value", "previous_response_id", `start with "resp_"`},
		"store":                   {`"input":"hi","store":"no"`, request.Caps{}, "invalid_type", "store", "a boolean"},
		"temperature":             {`"input":"hi","temperature":1.01`, request.Caps{}, "invalid_value", "temperature", "from 0 to 1, not 1.01"},
		"a cold one":              {`"input":"hi","temperature":-0.1`, request.Caps{}, "invalid_value", "temperature", "from 0 to 1"},
		"temperature's type":      {`"input":"hi","temperature":"0.5"`, request.Caps{}, "invalid_type", "temperature", "a number"},
		"top_p":                   {`"input":"hi","top_p":2`, request.Caps{}, "invalid_value", "top_p", "from 0 to 1"},
		"min_p":                   {`"input":"hi","min_p":-1`, request.Caps{}, "invalid_value", "min_p", "from 0 to 1"},
		"top_k":                   {`"input":"hi","top_k":-2`, request.Caps{}, "invalid_value", "top_k", "from -1 to 2147483647"},
		"half a top_k":            {`"input":"hi","top_k":0.5`, request.Caps{}, "invalid_type", "top_k", "a whole number"},
		"repeat_penalty":          {`"input":"hi","repeat_penalty":0`, request.Caps{}, "invalid_value", "repeat_penalty", "above 0"},
		"no tokens":               {`"input":"hi","max_output_tokens":0`, request.Caps{}, "invalid_value", "max_output_tokens", "from 1 to 2147483647"},
		"half a token":            {`"input":"hi","max_output_tokens":1.5`, request.Caps{}, "invalid_type", "max_output_tokens", "a whole number"},
		"a huge number":           {`"input":"hi","max_output_tokens":1e999`, request.Caps{}, "invalid_value", "max_output_tokens", "from 1 to 2147483647"},
		"no context":              {`"input":"hi","context_length":0`, request.Caps{}, "invalid_value", "context_length", "from 1 to 2147483647"},
		"context's type":          {`"input":"hi","context_length":"8k"`, request.Caps{}, "invalid_type", "context_length", "a whole number"},
		"seed":                    {`"input":"hi","seed":"x"`, request.Caps{}, "invalid_type", "seed", "a whole number"},
		"stop":                    {`"input":"hi","stop":1`, request.Caps{}, "invalid_type", "stop", "a string or an array"},
		"integrations' type":      {`"input":"hi","integrations":{}`, request.Caps{}, "invalid_type", "integrations", "an array"},
		"reasoning's type":        {`"input":"hi","reasoning":true`, switchable, "invalid_type", "reasoning", "a string"},
		"reasoning, of no use":    {`"input":"hi","reasoning":"on"`, request.Caps{Reasoning: []string{}}, "invalid_value", "reasoning", "does not expose reasoning configuration"},
		"reasoning, no word":      {`"input":"hi","reasoning":"extreme"`, request.Caps{}, "invalid_value", "reasoning", "Supported settings: 'off', 'low', 'medium', 'high', 'on'."},
		"reasoning, empty":        {`"input":"hi","reasoning":""`, request.Caps{}, "invalid_value", "reasoning", "'' is not supported"},
		"reasoning, unknown word": {`"input":"hi","reasoning":"extreme"`, switchable, "invalid_value", "reasoning", "Supported settings: 'off', 'on'."},
		"reasoning, not offered":  {`"input":"hi","reasoning":"on"`, graded, "invalid_value", "reasoning", "Supported settings: 'low', 'medium', 'high'."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseChat(testkit.Scan(t, `{"model":"m",`+tt.fields+`}`), "m", tt.caps)
			if err == nil || err.Status() != 400 || err.EffectiveCode() != tt.code || err.Param != tt.param || !strings.Contains(err.Message, tt.message) {
				t.Errorf("%+v, want %s about %s: %s", err, tt.code, tt.param, tt.message)
			}
		})
	}
}

func TestParseChat_Reads(t *testing.T) {
	t.Parallel()
	user := func(parts ...translate.Part) translate.Item {
		return translate.Item{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: parts}
	}
	png, err := base64.StdEncoding.DecodeString(testkit.Pixel)
	if err != nil {
		t.Fatal(err)
	}
	system, none := "Be brief.", ""
	for name, tt := range map[string]struct {
		fields string
		caps   request.Caps
		want   Chat
		engine string // the fields of the engine's request, beside its messages
	}{
		"a text":  {`"input":"hi \"é\""`, request.Caps{}, Chat{Input: user(translate.Part{Text: `hi "é"`}), Store: true}, ``},
		"nothing": {`"input":""`, request.Caps{}, Chat{Input: user(translate.Part{}), Store: true}, ``},
		"nulls": {
			`"input":"hi","system_prompt":null,"previous_response_id":null,"store":null,"temperature":null,"reasoning":null,"context_length":null,` +
				`"stop":null,"integrations":null`, request.Caps{}, Chat{Input: user(translate.Part{Text: "hi"}), Store: true}, ``,
		},
		"messages": {
			`"input":[{"type":"message","content":"a"},{"type":"text","content":"b"}]`,
			request.Caps{},
			Chat{Input: user(translate.Part{Text: "a"}, translate.Part{Text: "b"}), Store: true},
			``,
		},
		"an image": {
			`"input":[{"type":"text","content":"Say:"},{"type":"image","data_url":"data:image/png;base64,` + testkit.Pixel + `"}]`, sighted,
			Chat{Input: user(translate.Part{Text: "Say:"}, translate.Part{Media: &translate.Media{Type: "image/png", Data: png}}), Store: true},
			``,
		},
		"a conversation": {
			`"input":"hi","system_prompt":"Be brief.","previous_response_id":"resp_1","store":false,"context_length":1000,"integrations":[]`,
			request.Caps{},
			Chat{Input: user(translate.Part{Text: "hi"}), System: &system, Previous: "resp_1", ContextLength: 1000},
			``,
		},
		"no system prompt": {`"input":"hi","system_prompt":""`, request.Caps{}, Chat{Input: user(translate.Part{Text: "hi"}), System: &none, Store: true}, ``},
		"sampling": {
			`"input":"hi","temperature":0,"top_p":1,"top_k":-1,"min_p":0.05,"repeat_penalty":1.1,"max_output_tokens":5`,
			request.Caps{},
			Chat{Input: user(translate.Part{Text: "hi"}), Store: true},
			`,"temperature":0,"top_p":1,"min_p":0.05,"top_k":-1,"repeat_penalty":1.1,"max_tokens":5`,
		},
		"beyond the specification": {
			`"input":"hi","seed":3,"stop":["a"],"logit_bias":[[5,false]],"presence_penalty":0.5,"frequency_penalty":-0.5,"x_unknown":1`,
			request.Caps{},
			Chat{Input: user(translate.Part{Text: "hi"}), Store: true},
			`,"seed":3,"logit_bias":[[5,false]],"presence_penalty":0.5,"frequency_penalty":-0.5`,
		},
		"reasoning off":                     {`"input":"hi","reasoning":"off"`, switchable, Chat{Input: user(translate.Part{Text: "hi"}), Store: true}, `,"chat_template_kwargs":{"enable_thinking":false},"reasoning_effort":"none"`},
		"reasoning on, of an unknown model": {`"input":"hi","reasoning":"on"`, request.Caps{}, Chat{Input: user(translate.Part{Text: "hi"}), Store: true}, `,"chat_template_kwargs":{"enable_thinking":true}`},
		"reasoning on":                      {`"input":"hi","reasoning":"on"`, switchable, Chat{Input: user(translate.Part{Text: "hi"}), Store: true}, `,"chat_template_kwargs":{"enable_thinking":true}`},
		"always on":                         {`"input":"hi","reasoning":"on"`, request.Caps{Reasoning: []string{"on"}}, Chat{Input: user(translate.Part{Text: "hi"}), Store: true}, ``},
		"much of it":                        {`"input":"hi","reasoning":"high"`, graded, Chat{Input: user(translate.Part{Text: "hi"}), Store: true}, `,"reasoning_effort":"high"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, bad := ParseChat(testkit.Scan(t, `{"model":"m",`+tt.fields+`}`), "m", tt.caps)
			if bad != nil {
				t.Fatal(bad)
			}
			upstream, bad := got.Upstream([]translate.Item{translate.SystemItem("S"), user(translate.Part{Text: "U"})}, nil)
			if bad != nil {
				t.Fatal(bad)
			}
			want := `{"messages":[{"role":"system","content":"S"},{"role":"user","content":"U"}]` + tt.engine + `}`
			if diff := cmp.Diff(want, string(upstream.Raw)); diff != "" {
				t.Errorf("the engine's request (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&tt.want, got, cmpopts.IgnoreUnexported(Chat{}), cmpopts.IgnoreFields(Chat{}, "Chat")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
