package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// agentModel is a model whose thinking can be turned off, and that takes images.
var agentModel = request.Caps{Vision: true, Reasoning: []string{"off", "on"}}

// requests are requests of the Messages API, each with what is special about it.
var requests = []struct {
	name, fields string
	caps         request.Caps
}{
	{"a text", `"messages":[{"role":"user","content":"Hello \"you\"\né"}]`, agentModel},
	{"texts in blocks", `"messages":[{"role":"user","content":[{"type":"text","text":"One","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Two"}]}]`, agentModel},
	{"a system prompt", `"system":"Be brief.","messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{
		"a system prompt in blocks, of which the first changes",
		`"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1; cch=a1b2c;"},{"type":"text","text":"You are."},{"type":"text","text":"Be."}],"messages":[{"role":"user","content":"Hi"}]`, agentModel,
	},
	{
		"a system prompt whose first line changes",
		`"system":"x-anthropic-billing-header: cch=a1b2c;\n\nBe \"brief\".","messages":[{"role":"user","content":"Hi"}]`, agentModel,
	},
	{"a system prompt that is only such a line", `"system":"x-anthropic-billing-header: 1","messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"system messages", `"system":"A","messages":[{"role":"system","content":"B"},{"role":"user","content":"Hi"},{"role":"system","content":[{"type":"text","text":"C"}]},` +
		`{"role":"assistant","content":"Ho"},{"role":"system","content":"D"},{"role":"user","content":"Well?"}]`, agentModel},
	{"a system message at the end", `"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"},{"role":"system","content":"Go on."}]`, agentModel},
	{"turns in pieces", `"messages":[{"role":"user","content":"A"},{"role":"user","content":[{"type":"text","text":"B"}]},{"role":"assistant","content":"C"},{"role":"assistant","content":[{"type":"text","text":"D"}]},{"role":"user","content":"E"}]`, agentModel},
	{"an empty message", `"messages":[{"role":"user","content":[]}]`, agentModel},
	{"a prefill", `"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"I say:"}]`, agentModel},
	{"a prefill of nothing", `"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"text","text":" \n"}]}]`, agentModel},
	{"an image", `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"\u0069` + testkit.Pixel[1:] + `"}},{"type":"text","text":"What is it?"}]}]`, agentModel},
	{"an image as a data URL", `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"data:image/png;base64,` + testkit.Pixel + `"}}]}]`, agentModel},
	{"an image elsewhere", `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]}]`, agentModel},
	{"an image for a model without vision", `"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]}]`, request.Caps{}},
	{"an image that is none", `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]}]`, agentModel},
	{"a film as an image", `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"data:video/mp4;base64,AAAAIGZ0eXBpc29t"}}]}]`, agentModel},
	{"documents", `"messages":[{"role":"user","content":[{"type":"document","title":"My \"notes\"","context":"old","source":{"type":"text","media_type":"text/plain","data":"Line 1\nLine 2"}},` +
		`{"type":"document","source":{"type":"content","content":"Whole"}},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"Part"}]}},{"type":"text","text":"Sum up."}]}]`, agentModel},
	{"a PDF", `"messages":[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}}]}]`, agentModel},
	{"a search result", `"messages":[{"role":"user","content":[{"type":"search_result","source":"https://a","title":"A","content":[{"type":"text","text":"Found"}]}]}]`, agentModel},
	{"tools", `"tools":[{"name":"get_weather","description":"Tells","input_schema":{"type":"object","properties":{"city":{"type":"string"}}},"cache_control":null},` +
		`{"type":"custom","name":"now","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"any tool", `"tool_choice":{"type":"any","disable_parallel_tool_use":true},"tools":[{"name":"a","input_schema":{}},{"name":"b","input_schema":{}}],"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"one tool", `"tool_choice":{"type":"tool","name":"b"},"tools":[{"name":"a","input_schema":{}},{"name":"b","input_schema":{}}],"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"no tool", `"tool_choice":{"type":"none"},"tools":[{"name":"a","input_schema":{}}],"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"an unknown tool", `"tool_choice":{"type":"tool","name":"c"},"tools":[{"name":"a","input_schema":{}},{"name":"b","input_schema":{}}],"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"any tool of none", `"tool_choice":{"type":"any"},"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"a tool loop", `"thinking":{"type":"enabled","budget_tokens":50},"messages":[{"role":"user","content":"Before"},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"Long ago","signature":"x"},{"type":"text","text":"Yes"}]},{"role":"user","content":"Now"},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"I call.","signature":"x"},{"type":"redacted_thinking","data":"y"},{"type":"text","text":"Let me see."},` +
		`{"type":"tool_use","id":"t1","name":"a","input":{"x": "y"}},{"type":"tool_use","id":"t2","name":"b"},{"type":"server_tool_use","id":"t3","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"t3","content":[]}]},` +
		`{"role":"user","content":[{"type":"text","text":"A reminder."},{"type":"tool_result","tool_use_id":"t1","content":"Rain"},{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"Broken"}]}]}]`, agentModel},
	{"results of all sorts", `"messages":[{"role":"user","content":"Now"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"},` +
		`{"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"See"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + testkit.Pixel + `"}},{"type":"tool_reference","tool_name":"b"},` +
		`{"type":"document","source":{"type":"text","data":"Doc"}}]}]}]`, agentModel},
	{"a result with an image for a model without vision", `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]}]}]`, request.Caps{}},
	{"thoughts that were not shown", `"thinking":{"type":"adaptive","display":"omitted"},"messages":[{"role":"user","content":"Now"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"lmo1SSAiY2FsbCI="},` +
		`{"type":"thinking","thinking":"","signature":"of another server"},{"type":"tool_use","id":"t1","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}]`, agentModel},
	{"a call without a result", `"messages":[{"role":"user","content":"Now"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"a","input":{}}]}]`, agentModel},
	{"sampling", `"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,"repeat_penalty":1.1,"seed":7,"stop_sequences":["END","","\n\n"],"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"what nobody knows", `"metadata":{"user_id":"u"},"service_tier":"auto","context_management":{"edits":[]},"x_unknown":[1],"messages":[{"role":"user","content":"Hi","x":1}]`, agentModel},
	{"thinking", `"thinking":{"type":"enabled","budget_tokens":20},"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"thinking, disabled", `"thinking":{"type":"disabled"},"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"thinking, adaptive with an effort", `"thinking":{"type":"adaptive"},"output_config":{"effort":"max"},"messages":[{"role":"user","content":"Hi"}]`, request.Caps{Reasoning: []string{"low", "medium", "high"}}},
	{"an effort without thinking", `"output_config":{"effort":"max"},"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"no thinking of a model that always thinks", `"messages":[{"role":"user","content":"Hi"}]`, request.Caps{Reasoning: []string{"low", "medium", "high"}}},
	{"thinking of a model that doesn't", `"thinking":{"type":"enabled","budget_tokens":20},"messages":[{"role":"user","content":"Hi"}]`, request.Caps{Reasoning: []string{}}},
	{"a schema", `"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"a schema at its older place", `"output_format":{"type":"json_schema","schema":{"type":"object"}},"messages":[{"role":"user","content":"Hi"}]`, agentModel},

	{"no messages", `"system":"A"`, agentModel},
	{"messages of another type", `"messages":"Hi"`, agentModel},
	{"empty messages", `"messages":[]`, agentModel},
	{"only system messages", `"messages":[{"role":"system","content":"A"}]`, agentModel},
	{"only a prefill of nothing", `"messages":[{"role":"assistant","content":""}]`, agentModel},
	{"a message that is none", `"messages":["Hi"]`, agentModel},
	{"an unknown role", `"messages":[{"role":"tool","content":"Hi"}]`, agentModel},
	{"no content", `"messages":[{"role":"user","content":"A"},{"role":"user"}]`, agentModel},
	{"content of another type", `"messages":[{"role":"user","content":5}]`, agentModel},
	{"a block that is none", `"messages":[{"role":"user","content":["Hi"]}]`, agentModel},
	{"a block without a type", `"messages":[{"role":"user","content":[{"text":"Hi"}]}]`, agentModel},
	{"an unknown block", `"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"audio"}]}]`, agentModel},
	{"an unknown block of the assistant's", `"messages":[{"role":"assistant","content":[{"type":"image"}]}]`, agentModel},
	{"a text without text", `"messages":[{"role":"user","content":[{"type":"text"}]}]`, agentModel},
	{"an input that is no object", `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":"{}"}]}]`, agentModel},
	{"a result without an id", `"messages":[{"role":"user","content":[{"type":"tool_result","content":"a"}]}]`, agentModel},
	{"a system block that is no text", `"system":[{"type":"image"}],"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"a limit of nothing", `"max_tokens":0,"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"a temperature that is too high", `"temperature":1.5,"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"stop sequences of another type", `"stop_sequences":["a",1],"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"a budget above the limit", `"thinking":{"type":"enabled","budget_tokens":100},"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"no budget", `"thinking":{"type":"enabled"},"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"an unknown thinking", `"thinking":{"type":"deep"},"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"an unknown effort", `"output_config":{"effort":"none"},"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"a tool without a schema", `"tools":[{"name":"a"}],"messages":[{"role":"user","content":"Hi"}]`, agentModel},
	{"a tool without a name", `"tools":[{"input_schema":{}}],"messages":[{"role":"user","content":"Hi"}]`, agentModel},
}

// TestMessages_Requests compares the engine's request, or the error, for each request with a golden file.
func TestMessages_Requests(t *testing.T) {
	t.Parallel()
	var all bytes.Buffer
	for _, r := range requests {
		limit := `"max_tokens":100,`
		if strings.Contains(r.fields, `"max_tokens"`) {
			limit = ""
		}
		fmt.Fprintf(&all, "# %s\n%s\n%s\n\n", r.name, r.fields, sentFor(t, `{"model":"m",`+limit+r.fields+`}`, r.caps))
	}
	testkit.Golden(t, "testdata/requests.golden", all.Bytes())
}

func sentFor(tb testing.TB, request string, caps request.Caps) string {
	tb.Helper()
	body, err := jsonbody.Scan([]byte(request))
	if err != nil {
		tb.Fatalf("%s: %v", request, err)
	}
	m, err := ParseMessages(body, caps)
	if err != nil {
		var e errorBody
		if err := json.Unmarshal(Errors{}.AppendError(nil, err, ""), &e); err != nil {
			tb.Fatal(err)
		}
		return fmt.Sprintf("%d %s", Errors{}.Status(err), e.Error.Message)
	}
	upstream, err := m.Upstream()
	if err != nil {
		tb.Fatalf("what was made of %s is wrong: %v", request, err)
	}
	told := ""
	if m.Thinking != ThinkingHidden || m.Chat.SingleCall || m.Chat.Forced || m.Chat.Thinks || m.Chat.Stops != nil {
		told = fmt.Sprintf("\nthinking %d, one call %t, forced %t, thinks %t, stop strings %q", m.Thinking, m.Chat.SingleCall, m.Chat.Forced, m.Chat.Thinks, m.Chat.Stops)
	}
	return string(upstream.Raw) + told
}

func TestMessages_CountNeedsNoLimit(t *testing.T) {
	t.Parallel()
	body, bad := jsonbody.Scan([]byte(`{"messages":[{"role":"user","content":"Hi"}],"thinking":{"type":"enabled","budget_tokens":4096}}`))
	if bad != nil {
		t.Fatal(bad)
	}
	if _, err := ParseCount(body, agentModel); err != nil {
		t.Error(err)
	}
	if _, err := ParseMessages(body, agentModel); err == nil || err.Param != "max_tokens" {
		t.Errorf("without a limit: %v", err)
	}
}

// Requests that differ only in the header line are the same for the engine.
func TestMessages_TheChangingHeaderChangesNothing(t *testing.T) {
	t.Parallel()
	request := func(header string) string {
		return sentFor(t, `{"max_tokens":9,"system":[{"type":"text","text":"x-anthropic-billing-header: `+header+`"},{"type":"text","text":"You are."}],"messages":[{"role":"user","content":"Hi"}]}`, agentModel)
	}
	if a, b := request("cch=11111;"), request("cch=22222;"); a != b || !strings.Contains(a, "You are.") {
		t.Errorf("%s\n%s", a, b)
	}
}

func TestMessages_Defaults(t *testing.T) {
	t.Parallel()
	defaults := map[string]json.RawMessage{
		"system_prompt": json.RawMessage(`"Be brief."`), "stop": json.RawMessage(`"END"`), "temperature": json.RawMessage(`0.2`), "max_completion_tokens": json.RawMessage(`7`),
	}
	for request, want := range map[string]string{
		`{"preset":"p"}`:                   `{"max_tokens":7,"stop_sequences":["END"],"system":"Be brief.","temperature":0.2}`,
		`{"preset":"p","system":"My own"}`: `{"system":"My own","max_tokens":7,"stop_sequences":["END"],"temperature":0.2}`,
		`{"max_tokens":9,"stop_sequences":["X"],"temperature":1,"system":null}`: `{"max_tokens":9,"stop_sequences":["X"],"temperature":1,"system":"Be brief."}`,
	} {
		body, bad := jsonbody.Scan([]byte(request))
		if bad == nil {
			body, bad = WithDefaults(body, "preset", defaults)
		}
		if bad != nil || string(body.Raw) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", request, bad, body.Raw, want)
		}
	}
}

// FuzzParseMessages: whatever the request, it is refused with the place that is at fault, or the engine's request is well
// formed, and has all of the texts.
func FuzzParseMessages(f *testing.F) {
	for _, r := range requests {
		f.Add([]byte(`{"max_tokens":100,`+r.fields+`}`), r.caps.Vision, len(r.caps.Reasoning) > 0)
	}
	f.Fuzz(func(t *testing.T, raw []byte, vision, thinks bool) {
		body, bad := jsonbody.Scan(raw)
		if bad != nil {
			return
		}
		caps := request.Caps{Vision: vision, Reasoning: []string{}}
		if thinks {
			caps.Reasoning = []string{"off", "on"}
		}
		m, bad := ParseMessages(body, caps)
		if bad != nil {
			if bad.Status() != 400 || bad.Param == "" || !strings.HasPrefix(strings.TrimPrefix(bad.Message, `"`), bad.Param) {
				t.Fatalf("%+v", bad)
			}
			return
		}
		upstream, bad := m.Upstream()
		if bad != nil {
			t.Fatalf("%v of %s", bad, raw)
		}
		var made struct{ Messages []struct{ Role string } }
		if err := json.Unmarshal(upstream.Raw, &made); err != nil || len(made.Messages) == 0 {
			t.Fatalf("%v: %s", err, upstream.Raw)
		}
		for i, message := range made.Messages {
			if i > 0 && message.Role != "tool" && message.Role == made.Messages[i-1].Role {
				t.Fatalf("the turns don't alternate: %s", upstream.Raw)
			}
		}
	})
}

func TestParseMessages_Bounds(t *testing.T) {
	t.Parallel()
	many := func(n int, item string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	const message = `{"role":"user","content":"a"}`
	tool := `{"name":"a","input_schema":{"type":"object"}}`
	for name, tt := range map[string]struct{ fields, says string }{
		"messages": {`"messages":` + many(request.MaxMessages+1, message), "at most 16384 messages"},
		"blocks":   {`"messages":[{"role":"user","content":` + many(request.MaxParts+1, `{"type":"text","text":"a"}`) + `}]`, "at most 4096 blocks"},
		"tools":    {`"messages":[` + message + `],"tools":` + many(request.MaxTools+1, tool), "at most 1024 tools"},
		"a schema": {`"messages":[` + message + `],"tool_choice":{"type":"any"},"tools":[{"name":"a","input_schema":{"type":"object","properties":{"a":{"pattern":"(a?){99}"}}}}]`, "may be empty"},
		"a type":   {`"messages":[` + message + `],"tool_choice":{"type":"any"},"tools":[{"name":"a","input_schema":{"type":"array"}}]`, `"tools.0.input_schema" of the tool "a" can't be matched`},
		"a format": {`"messages":[` + message + `],"output_config":{"format":{"type":"json_schema","schema":{"pattern":"(a?){99}"}}}`, "may be empty"},
		"an input": {`"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{"a":` + testkit.Nested("[", "", "]", 64) + `}}]}]`, "levels deep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseMessages(testkit.Scan(t, `{"max_tokens":1,`+tt.fields+`}`), request.Caps{})
			if err == nil || err.Status() != 400 || !strings.Contains(err.Message, tt.says) {
				t.Errorf("error %v, want one that says %q", err, tt.says)
			}
		})
	}
}
