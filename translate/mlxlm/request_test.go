package mlxlm_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/mlxlm"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// vocabulary is that of the tests' model.
const vocabulary = 315

// capsOf are those of a model on mlx_lm.server.
func capsOf(vocabulary int, reasoning ...string) request.Caps {
	c := request.Caps{Vocabulary: vocabulary, Reasoning: reasoning, MaxContext: 4096}
	mlxlm.Wire{}.Describe(&c)
	return c
}

// wireFor is the wire format for a model.
func wireFor(caps request.Caps) mlxlm.Wire {
	return mlxlm.Wire{}.For(&caps).(mlxlm.Wire)
}

// chat returns the request that a client's OpenAI-style chat makes, or the reason why it is refused.
func chat(t *testing.T, raw string, caps request.Caps) (wire.Upstream, *translate.Error) {
	t.Helper()
	body, bad := jsonbody.Scan([]byte(raw))
	if bad != nil {
		t.Fatal(bad)
	}
	asked, bad := openai.ParseChat(body, caps)
	if bad != nil {
		return wire.Upstream{}, bad
	}
	w := wireFor(caps)
	if bad := w.CheckChat(body, asked); bad != nil {
		return wire.Upstream{}, bad
	}
	return w.Chat(body, asked, 0), nil
}

// bodyOf is a request's body, without the fields that all have. It checks them and the rules of the server.
func bodyOf(t *testing.T, u wire.Upstream, vocabulary int) string {
	t.Helper()
	body := bytes.Join(u.Body, nil)
	if err := (rules{u.Path, vocabulary}).check(body); err != nil {
		t.Errorf("%v: %s", err, body)
	}
	if !gjson.GetBytes(body, "logit_bias.@keys.0").Exists() {
		t.Errorf("a request without any bias keeps those of others from being applied: %s", body)
	}
	return strings.NewReplacer(
		`,"model":"default_model","stream":true,"stream_options":{"include_usage":true}`, "", `,"logit_bias":{"0":0}`, "",
	).Replace(string(body))
}

// hi are messages, and what the server is sent for them.
const hi = `"messages":[{"role":"user","content":"hi"}]`

func TestChat(t *testing.T) {
	t.Parallel()
	const free = `{"max_tokens":2147483647`
	for name, tt := range map[string]struct{ fields, want string }{
		"nothing":               {"", free + `,` + hi + `}`},
		"a limit":               {`,"max_tokens":40.0`, `{"max_tokens":40,` + hi + `}`},
		"another name":          {`,"max_completion_tokens":1e2,"max_tokens":5`, `{"max_tokens":100,` + hi + `}`},
		"no limit":              {`,"max_tokens":-1`, free + `,` + hi + `}`},
		"the highest limit":     {`,"max_tokens":99999999999`, free + `,` + hi + `}`},
		"nulls":                 {`,"temperature":null,"top_p":null,"seed":null,"stop":null,"tools":null,"logit_bias":null,"chat_template_kwargs":null`, free + `,` + hi + `}`},
		"sampling":              {`,"temperature":1,"top_p":0.50,"min_p":0,"top_k":4e1`, free + `,"temperature":1,"top_p":0.5,"min_p":0,"top_k":40,` + hi + `}`},
		"a temperature of 0":    {`,"temperature":0.00000000001`, free + `,"temperature":0,` + hi + `}`},
		"all tokens":            {`,"top_k":315`, free + `,"top_k":0,` + hi + `}`},
		"all but one":           {`,"top_k":314`, free + `,"top_k":314,` + hi + `}`},
		"any token":             {`,"top_k":-1`, free + `,"top_k":0,` + hi + `}`},
		"a seed":                {`,"seed":42.0`, `{"max_tokens":2147483647,"seed":42,` + hi + `}`},
		"a large seed":          {`,"seed":4294967296`, `{"max_tokens":2147483647,"seed":1,` + hi + `}`},
		"a random seed":         {`,"seed":-1`, free + `,` + hi + `}`},
		"penalties":             {`,"repeat_penalty":1.1,"presence_penalty":-1,"frequency_penalty":0`, free + `,"repetition_penalty":1.1,"repetition_context_size":64,"presence_penalty":-1,"presence_context_size":64,` + hi + `}`},
		"another penalty":       {`,"repetition_penalty":2,"repeat_last_n":9`, free + `,"repetition_penalty":2,"repetition_context_size":9,` + hi + `}`},
		"a penalty for all":     {`,"repetition_penalty":2,"repeat_last_n":-1`, free + `,"repetition_penalty":2,"repetition_context_size":0,` + hi + `}`},
		"a penalty for none":    {`,"repetition_penalty":2,"repeat_last_n":0`, free + `,` + hi + `}`},
		"no penalty":            {`,"repetition_penalty":1`, free + `,` + hi + `}`},
		"xtc":                   {`,"xtc_probability":1,"xtc_threshold":0`, free + `,"xtc_probability":1.0,"xtc_threshold":0.0,` + hi + `}`},
		"xtc by default":        {`,"xtc_probability":0.5`, free + `,"xtc_probability":0.5,"xtc_threshold":0.1,` + hi + `}`},
		"xtc without effect":    {`,"xtc_probability":0.5,"xtc_threshold":0.6`, free + `,` + hi + `}`},
		"biases":                {`,"logit_bias":{"007":1,"314":-100,"5":false}`, free + `,"logit_bias":{"5":-10000,"7":1,"314":-100},` + hi + `}`},
		"biases in pairs":       {`,"logit_bias":[[3,1],[3,1.5]]`, free + `,"logit_bias":{"3":2.5},` + hi + `}`},
		"no biases":             {`,"logit_bias":{}`, free + `,` + hi + `}`},
		"stop strings":          {`,"stop":["a"]`, free + `,` + hi + `}`},
		"no thinking":           {`,"reasoning_effort":"none"`, free + `,` + hi + `,"chat_template_kwargs":{"enable_thinking":false}}`},
		"thinking all the same": {`,"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true}`, free + `,` + hi + `,"chat_template_kwargs":{"enable_thinking":true}}`},
		"an effort":             {`,"reasoning_effort":"high","chat_template_kwargs":{"a":[1,{"b":null}],"c":null}`, free + `,` + hi + `,"chat_template_kwargs":{"a":[1,{"b":null}],"enable_thinking":true,"reasoning_effort":"high"}}`},
		"the template's effort": {`,"reasoning_effort":"high","chat_template_kwargs":{"reasoning_effort":"low"}`, free + `,` + hi + `,"chat_template_kwargs":{"reasoning_effort":"low","enable_thinking":true}}`},
		"tools":                 {`,"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"const":1e999}}}}}]`, free + `,` + hi + `,"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"const":1.7976931348623157e+308}}}}}]}`},
		"tools not to be used":  {`,"tool_choice":"none","tools":[{"type":"function","function":{"name":"a"}}]`, free + `,` + hi + `}`},
		"what it doesn't know":  {`,"mirostat":2,"grammar":"x","user":"u","n_probs":0,"response_format":{"type":"text"},"draft_model":"d","thinking_budget_tokens":4`, free + `,` + hi + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, bad := chat(t, `{"model":"m",`+hi+tt.fields+`}`, capsOf(vocabulary, "off", "low", "high"))
			if bad != nil {
				t.Fatal(bad)
			}
			if diff := cmp.Diff(tt.want, bodyOf(t, u, vocabulary)); diff != "" || u.Path != "/v1/chat/completions" {
				t.Errorf("%s (-want +got):\n%s", u.Path, diff)
			}
		})
	}
}

// A template that was rendered gets its own words, and the messages that it takes.
func TestChat_Template(t *testing.T) {
	t.Parallel()
	caps := capsOf(vocabulary)
	caps.Template = &request.Template{Default: "on", NoSystem: true, Thinking: map[string]request.Switch{
		"off": {Arguments: json.RawMessage(`{"thinking_budget":0}`)}, "on": {},
	}}
	for name, tt := range map[string]struct{ fields, want string }{
		"no choice":   {"", `"content":"Rules\n\nhi"}]}`},
		"no thinking": {`,"reasoning_effort":"none"`, `"content":"Rules\n\nhi"}],"chat_template_kwargs":{"thinking_budget":0}}`},
		"thinking":    {`,"reasoning_effort":"high"`, `"content":"Rules\n\nhi"}]}`},
		"a switch":    {`,"chat_template_kwargs":{"enable_thinking":false,"a":1}`, `"content":"Rules\n\nhi"}],"chat_template_kwargs":{"a":1,"thinking_budget":0}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, bad := chat(t, `{"messages":[{"role":"system","content":"Rules"},{"role":"user","content":"hi"}]`+tt.fields+`}`, caps)
			if bad != nil {
				t.Fatal(bad)
			}
			want := `{"max_tokens":2147483647,"messages":[{"role":"user",` + tt.want
			if diff := cmp.Diff(want, bodyOf(t, u, vocabulary)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	body, bad := jsonbody.Scan([]byte(`{` + hi + `}`))
	if bad != nil {
		t.Fatal(bad)
	}
	for word, isRefused := range map[string]bool{"off": false, "medium": true} {
		asked := &request.Chat{Setting: request.Setting{Model: "m", Word: word}}
		if bad := wireFor(caps).CheckChat(body, asked); (bad != nil) != isRefused || bad != nil && bad.Param != "reasoning" {
			t.Errorf("%s: %v", word, bad)
		}
		if bad := wireFor(capsOf(vocabulary)).CheckChat(body, asked); bad != nil {
			t.Errorf("%s, of a template that wasn't rendered: %v", word, bad)
		}
	}
}

// Contents become strings, and what Python can't read is mended.
func TestChat_Messages(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ messages, want string }{
		"parts":          {`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b\n"}]}`, `{"role":"user","content":"ab\n"}`},
		"no content":     {`{"role":"assistant","content":null},{"role":"user","content":"a"}`, `{"role":"assistant","content":""},{"role":"user","content":"a"}`},
		"other roles":    {`{"role":"developer","content":"a"},{"role":"function","name":"f","content":"b"}`, `{"role":"system","content":"a"},{"role":"tool","content":"b","name":"f"}`},
		"a pair":         {`{"role":"user","content":"\ud83c\udf89"}`, `{"role":"user","content":"🎉"}`},
		"a thought":      {`{"role":"assistant","content":"a","reasoning":"b"},{"role":"user","content":"c"}`, `{"role":"assistant","content":"a","reasoning_content":"b"},{"role":"user","content":"c"}`},
		"unknown fields": {`{"role":"user","content":"a","cache_control":{"x":1},"name":null}`, `{"role":"user","content":"a"}`},
		"a call": {
			`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\": \"\\ud83c\\udf89\", \"y\": ` + strings.Repeat("9", 400) + `}"}}]},{"role":"tool","tool_call_id":"1","content":"b"}`,
			`{"role":"assistant","content":"","tool_calls":[{"id":"eqvNplxma","type":"function","function":{"name":"f","arguments":"{\"x\":\"🎉\",\"y\":1.7976931348623157e+308}"}}]},{"role":"tool","content":"b","tool_call_id":"eqvNplxma"}`,
		},
		"a call with half a pair": {
			`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{\"x\": \"\\ud83c\"}"}}]},{"role":"tool","content":"b"}`,
			`{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"arguments\":\"{\\\"x\\\": \\\"\\\\ud83c\\\"}\"}"}}]},{"role":"tool","content":"b"}`,
		},
		"a broken call": {
			`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{\"x\": "}}]},{"role":"tool","content":"b"}`,
			`{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"arguments\":\"{\\\"x\\\": \"}"}}]},{"role":"tool","content":"b"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, bad := chat(t, `{"messages":[`+tt.messages+`]}`, capsOf(vocabulary))
			if bad != nil {
				t.Fatal(bad)
			}
			if diff := cmp.Diff(`{"max_tokens":2147483647,"messages":[`+tt.want+`]}`, bodyOf(t, u, vocabulary)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckChat(t *testing.T) {
	t.Parallel()
	const tools = `,"tools":[{"type":"function","function":{"name":"a"}}]`
	for name, tt := range map[string]struct {
		fields, param string
		vocabulary    int
	}{
		"log probabilities":    {`,"logprobs":true`, "logprobs", 9},
		"likeliest tokens":     {`,"logprobs":true,"top_logprobs":2`, "logprobs", 9},
		"JSON":                 {`,"response_format":{"type":"json_object"}`, "response_format", 9},
		"a schema":             {`,"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`, "response_format", 9},
		"a demanded call":      {tools + `,"tool_choice":"required"`, "tool_choice", 9},
		"a certain call":       {tools + `,"tool_choice":{"type":"function","function":{"name":"a"}}`, "tool_choice", 9},
		"an argument":          {`,"chat_template_kwargs":{"chat_template":"{{ 1 }}"}`, "chat_template_kwargs", 9},
		"an escaped argument":  {`,"chat_template_kwargs":{"return\u005fdict":true}`, "chat_template_kwargs", 9},
		"a token too far":      {`,"logit_bias":{"9":1}`, "logit_bias", 9},
		"a negative token":     {`,"logit_bias":{"-1":1}`, "logit_bias", 9},
		"half a token":         {`,"logit_bias":[[1.5,1]]`, "logit_bias", 9},
		"a text":               {`,"logit_bias":{"a":1}`, "logit_bias", 9},
		"a token of who knows": {`,"logit_bias":{"0":1}`, "logit_bias", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, bad := chat(t, `{`+hi+tt.fields+`}`, capsOf(tt.vocabulary)); bad == nil || bad.Kind != translate.KindInvalid || bad.Param != tt.param {
				t.Errorf("%+v", bad)
			}
		})
	}
	t.Run("the beginning of an answer", func(t *testing.T) {
		t.Parallel()
		if _, bad := chat(t, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`, capsOf(9)); bad == nil || bad.Param != "messages" {
			t.Errorf("%+v", bad)
		}
	})
}

// Choices have seeds of their own, and an unknown number of tokens is taken to be small.
func TestChat_Choices(t *testing.T) {
	t.Parallel()
	body, _ := jsonbody.Scan([]byte(`{"n":3,"seed":4294967294,"top_k":1000,` + hi + `}`))
	asked, bad := openai.ParseChat(body, capsOf(0))
	if bad != nil {
		t.Fatal(bad)
	}
	for choice, seed := range []string{"4294967294", "0", "1"} {
		want := `{"max_tokens":2147483647,"seed":` + seed + `,"top_k":0,` + hi + `}`
		if got := bodyOf(t, wireFor(capsOf(0)).Chat(body, asked, choice), 0); got != want {
			t.Errorf("choice %d: %s", choice, got)
		}
	}
}

func TestDrops(t *testing.T) {
	t.Parallel()
	body, _ := jsonbody.Scan([]byte(`{"model":"m","mirostat":2,"user":"u","xtc_probability":0.5,"temperature":0,"stop":"a","seed":null,` + hi + `}`))
	asked, bad := openai.ParseChat(body, capsOf(9))
	if bad != nil {
		t.Fatal(bad)
	}
	if diff := cmp.Diff([]string{"model", "mirostat", "user", "seed"}, mlxlm.Wire{}.Drops(body, asked)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// completion returns the request for a candidate of a text completion.
func completion(t *testing.T, raw string, prompt, candidate int) (wire.Upstream, *translate.Error) {
	t.Helper()
	body, bad := jsonbody.Scan([]byte(raw))
	if bad != nil {
		t.Fatal(bad)
	}
	asked, bad := openai.ParseCompletion(body, capsOf(vocabulary))
	if bad != nil {
		return wire.Upstream{}, bad
	}
	w := wireFor(capsOf(vocabulary))
	if bad := w.CheckCompletion(body, asked); bad != nil {
		return wire.Upstream{}, bad
	}
	return w.Completion(body, asked, prompt, candidate), nil
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	u, bad := completion(t, `{"prompt":["a","b\ud83c\udf89"],"n":2,"seed":7,"max_tokens":0,"temperature":0.5,"stop":"x","logit_bias":{"1":2},"echo":true}`, 1, 1)
	if bad != nil {
		t.Fatal(bad)
	}
	want := `{"max_tokens":2,"seed":8,"temperature":0.5,"logit_bias":{"1":2},"prompt":"b🎉"}`
	if diff := cmp.Diff(want, bodyOf(t, u, vocabulary)); diff != "" || u.Path != "/v1/completions" {
		t.Errorf("%s (-want +got):\n%s", u.Path, diff)
	}
	for fields, param := range map[string]string{
		`"prompt":[1,2]`: "prompt", `"prompt":[[1],[2]]`: "prompt", `"prompt":""`: "prompt", `"prompt":["a",""]`: "prompt", `"prompt":"a","suffix":"b"`: "suffix",
		`"prompt":"a","logprobs":0`: "logprobs", `"prompt":"a","best_of":2`: "best_of", `"prompt":"a","logit_bias":{"315":1}`: "logit_bias",
	} {
		if _, bad := completion(t, `{`+fields+`}`, 0, 0); bad == nil || bad.Kind != translate.KindInvalid || bad.Param != param {
			t.Errorf("%s: %+v", fields, bad)
		}
	}
}

// Bounds are never too small, and what is derived from a request leaves it unchanged.
func TestBounds(t *testing.T) {
	t.Parallel()
	const raw = `{"seed":5,"max_tokens":40,` + hi + `,"tools":[{"type":"function","function":{"name":"a"}}]}`
	u, bad := chat(t, raw, capsOf(vocabulary))
	if bad != nil {
		t.Fatal(bad)
	}
	w := wireFor(capsOf(vocabulary))
	before := bodyOf(t, u, vocabulary)
	most, own := w.Bounds(u)
	if least := len(hi) + 4*len(`"tools":[{"type":"function","function":{"name":"a"}}]`); most < least || most > least+1100 || own != 40 {
		t.Errorf("bounds %d and %d", most, own)
	}
	limited := w.Limit(u, 7)
	if _, own := w.Bounds(limited); own != 7 || limited.Counts || bodyOf(t, limited, vocabulary) != strings.Replace(before, "40", "7", 1) {
		t.Errorf("limited to %d: %s", own, bytes.Join(limited.Body, nil))
	}
	counting := w.Counting(u)
	if want := strings.NewReplacer("40", "1", `"seed":5,`, "").Replace(before); !counting.Counts || bodyOf(t, counting, vocabulary) != want {
		t.Errorf("counting %t: %s", counting.Counts, bytes.Join(counting.Body, nil))
	}
	if after := bodyOf(t, u, vocabulary); after != before || u.Counts {
		t.Errorf("changed: %s", after)
	}
	if u, _ := chat(t, `{`+hi+`}`, capsOf(vocabulary)); true {
		if _, own := w.Bounds(u); own != 0 {
			t.Errorf("no limit is %d", own)
		}
	}
}

func TestFault(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		kind   translate.Kind
		want   string
	}{
		"a template":        {404, `{"error": "Conversation roles must alternate user/assistant/..."}`, translate.KindInvalid, "The engine refused the request: Conversation roles must alternate user/assistant/..."},
		"a path":            {404, `{"error": "can't open '/Users/ann/models/x/tokenizer.json' or C:\\models\\a\\b"}`, translate.KindInvalid, "The engine refused the request: can't open '…' or …"},
		"no endpoint":       {404, `Not Found`, translate.KindEngineFailed, "The engine answered with status 404: no reason was given."},
		"no JSON":           {400, `{"error": "Invalid JSON in request body: x"}`, translate.KindEngineFailed, "The engine answered with status 400: Invalid JSON in request body: x"},
		"no length":         {411, `{"error": "Content-Length header is required"}`, translate.KindEngineFailed, "The engine answered with status 411: Content-Length header is required"},
		"another server's":  {500, `{"error":{"message":"oops"}}`, translate.KindEngineFailed, "The engine answered with status 500: oops"},
		"something else":    {501, `<html>`, translate.KindEngineFailed, "The engine answered with status 501: no reason was given."},
		"a very long error": {404, `{"error": "` + strings.Repeat("x", 1000) + `"}`, translate.KindInvalid, "The engine refused the request: " + strings.Repeat("x", 500) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if e := (mlxlm.Wire{}).Fault(tt.status, []byte(tt.body)); e.Kind != tt.kind || e.Message != tt.want {
				t.Errorf("%d %s", e.Kind, e.Message)
			}
		})
	}
}

// A request that counts isn't checked first, so values that aren't the template's are left out.
func TestChat_UncheckedTemplate(t *testing.T) {
	t.Parallel()
	body, _ := jsonbody.Scan([]byte(`{"chat_template_kwargs":{"chat_template":"x","a":1},` + hi + `}`))
	asked, bad := openai.ParseChat(body, capsOf(9))
	if bad != nil {
		t.Fatal(bad)
	}
	want := `{"max_tokens":2147483647,` + hi + `,"chat_template_kwargs":{"a":1}}`
	if got := bodyOf(t, wireFor(capsOf(9)).Chat(body, asked, 0), 9); got != want {
		t.Error(got)
	}
}

// FuzzRequest: whatever a client sends, in any dialect, the request that is made of it keeps to the rules.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{` + hi + `,"max_tokens":4,"temperature":1e-9,"top_k":5e2,"top_p":1,"min_p":0.0,"xtc_probability":1,"xtc_threshold":0,"seed":1e3}`,
		`{"messages":[{"role":"developer","content":[{"type":"text","text":"\ud800"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1e999}}}]},{"role":"tool","tool_call_id":"a","content":"b"}]}`,
		`{` + hi + `,"logit_bias":[[1,false],["2",3]],"repeat_penalty":1e-9,"repeat_last_n":-1,"presence_penalty":2,"frequency_penalty":-2}`,
		`{` + hi + `,"chat_template_kwargs":{"a":null,"enable_thinking":false,"b":{"c":1e400}},"reasoning_effort":"high"}`,
		`{` + hi + `,"tools":[{"type":"function","function":{"name":"a","description":"\udfff","parameters":{"type":"object","properties":{"\ud800":{"default":123456789012345678901234567890123456789012345678901}}}}}],"parallel_tool_calls":false}`,
		`{"prompt":["a","\ud800b"],"n":2,"max_tokens":0,"logit_bias":{"3":-100},"stop":["x"],"echo":true}`,
		`{"model":"m","max_tokens":3,"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"x","content":"y"}]}],"thinking":{"type":"disabled"},"stop_sequences":["a"],"top_k":0}`,
		`{"model":"m","input":"hi","system_prompt":"s","reasoning":"off","max_output_tokens":3,"temperature":0,"top_k":5,"repeat_penalty":1.2,"logit_bias":{"4":1}}`,
	} {
		f.Add([]byte(seed), vocabulary, uint8(1))
	}
	f.Fuzz(func(t *testing.T, raw []byte, vocabulary int, choice uint8) {
		if vocabulary < 0 || vocabulary > 1<<20 {
			return
		}
		caps := capsOf(vocabulary, []string{"off", "low", "medium", "high", "on"}[:choice%6]...)
		w := wireFor(caps)
		for _, u := range requestsOf(raw, caps, w, int(choice)) {
			for _, u := range []wire.Upstream{u, w.Counting(u), w.Limit(u, 9)} {
				body := bytes.Join(u.Body, nil)
				if err := (rules{u.Path, vocabulary}).check(body); err != nil {
					t.Fatalf("%v: %s", err, body)
				}
				if most, own := w.Bounds(u); most < len(u.Body[4]) || own < 0 {
					t.Fatalf("bounds %d and %d of %s", most, own, body)
				}
			}
		}
	})
}

// requestsOf returns the requests that are made of a body in the dialects that take it.
func requestsOf(raw []byte, caps request.Caps, w mlxlm.Wire, choice int) (all []wire.Upstream) {
	body, bad := jsonbody.Scan(raw)
	if bad != nil {
		return nil
	}
	add := func(body *jsonbody.Body, asked *request.Chat) {
		if w.CheckChat(body, asked) == nil {
			all = append(all, w.Chat(body, asked, choice))
		}
	}
	if asked, bad := openai.ParseChat(body, caps); bad == nil {
		add(body, asked)
	}
	if asked, bad := anthropic.ParseMessages(body, caps); bad == nil {
		if made, bad := asked.Upstream(); bad == nil {
			add(made, &asked.Chat)
		}
	}
	if asked, bad := native.ParseChat(body, "m", caps); bad == nil {
		if made, bad := asked.Upstream([]translate.Item{{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: []translate.Part{{Text: "hi"}}}}, nil); bad == nil {
			add(made, &asked.Chat)
		}
	}
	if asked, bad := openai.ParseCompletion(body, caps); bad == nil && w.CheckCompletion(body, asked) == nil {
		all = append(all, w.Completion(body, asked, choice%len(asked.Prompts), choice%asked.BestOf))
	}
	return all
}

// values are of all types, and at the edges of what fields take.
var values = []string{
	`null`, `true`, `false`, `0`, `-0`, `0.0`, `1`, `1.0`, `1e0`, `-1`, `2`, `0.5`, `0.6`, `40.0`, `1e2`, `314`, `315`, `316`, `1e-320`, `1e308`, `1e999`, `-1e999`,
	`4294967294`, `4294967295`, `9007199254740993`, `"a"`, `""`, `"high"`, `"none"`, `[]`, `{}`, `[1]`, `["a"]`, `[[1,2]]`, `{"1":2}`, `{"314":false}`, `{"enable_thinking":null}`,
	`{"type":"text"}`, `[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"default":1e999}}}}}]`,
}

// TestRequest_AnyFields is FuzzRequest with bodies that have known fields.
func TestRequest_AnyFields(t *testing.T) {
	t.Parallel()
	fields := []string{
		"n_predict", "max_completion_tokens", "max_tokens", "temperature", "top_p", "min_p", "top_k", "repeat_penalty", "repetition_penalty", "presence_penalty",
		"frequency_penalty", "repeat_last_n", "xtc_probability", "xtc_threshold", "seed", "logit_bias", "tools", "chat_template_kwargs", "reasoning_effort", "reasoning",
		"stop", "n", "response_format", "echo", "thinking", "system", "max_output_tokens", "parallel_tool_calls", "tool_choice", "stream", "repetition_context_size",
	}
	starts := []string{hi, `"prompt":"hi"`, `"prompt":["a","b"]`, `"input":"hi"`, `"max_tokens":9,` + hi}
	r := rand.New(rand.NewPCG(1, 2))
	made := 0
	for range 30_000 {
		raw := `{"model":"m",` + starts[r.IntN(len(starts))]
		for _, i := range r.Perm(len(fields))[:1+r.IntN(3)] {
			raw += `,"` + fields[i] + `":` + values[r.IntN(len(values))]
		}
		vocabulary := []int{0, vocabulary}[r.IntN(2)]
		caps := capsOf(vocabulary, []string{"off", "low"}[:r.IntN(3)]...)
		for _, u := range requestsOf([]byte(raw+"}"), caps, wireFor(caps), r.IntN(3)) {
			made++
			if err := (rules{u.Path, vocabulary}).check(bytes.Join(u.Body, nil)); err != nil {
				t.Fatalf("%s: %v: %s", raw, err, bytes.Join(u.Body, nil))
			}
		}
	}
	if made < 1000 {
		t.Errorf("only %d requests were made", made)
	}
}
