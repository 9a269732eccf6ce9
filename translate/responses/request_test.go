package responses

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// testModel is a model whose thinking can be turned off, and that takes images.
var testModel = request.Caps{Vision: true, Reasoning: []string{"off", "on"}, NoLogprobsWithTools: true}

const (
	patch  = `{"type":"custom","name":"patch","description":"Edits","format":{"type":"grammar","syntax":"lark","definition":"start: \"a\""}}`
	look   = `{"type":"function","name":"look","description":"Looks","parameters":{"type":"object","properties":{"at":{"type":"string"}}},"strict":true}`
	jump   = `{"type":"function","name":"jump"}`
	server = `{"type":"mcp","server_label":"maths","server_url":"https://h/mcp"}`
	called = `{"role":"user","content":"Now"},{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\": \"<me>\"}"}`
	answer = `{"type":"function_call_output","call_id":"c1","output":"Rain"}`
	asked  = `"input":"Hi"`
)

// requests are requests, each with what is special about it.
var requests = []struct {
	name, fields string
	caps         request.Caps
}{
	{"a text", `"input":"Hello \"you\"\né"`, testModel},
	{"a probe", `"input":"","max_output_tokens":1`, testModel},
	{"a probe with everything that a client may leave empty", `"input":"","text":{},"include":null,"tools":null,"tool_choice":null,"instructions":null,"reasoning":{},"metadata":null,"stream":null,"store":null,"previous_response_id":null`, testModel},
	{"an empty input with instructions", `"input":"","instructions":"Say hi."`, testModel},
	{"an empty input that goes on", `"input":"","previous_response_id":"resp_1"`, testModel},
	{"no input", `"instructions":"Say hi."`, testModel},
	{"no input that goes on", `"previous_response_id":"resp_1"`, testModel},
	{"an empty list", `"input":[]`, testModel},
	{"an empty list with instructions", `"input":[],"instructions":"Say hi."`, testModel},
	{"another type of input", `"input":1`, testModel},
	{"messages", `"input":[{"role":"user","content":"A"},{"type":"message","role":"assistant","content":"B"},{"type":"message","role":"user","content":[{"type":"input_text","text":"C"},{"type":"text","text":"D"}]}]`, testModel},
	{"messages as they were sent", `"input":[{"role":"user","content":"A"},{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"B","annotations":[],"logprobs":[]},{"type":"refusal","refusal":"No."}]},{"role":"user","content":"C"}]`, testModel},
	{"turns in pieces", `"input":[{"role":"user","content":"A"},{"role":"user","content":"B"},{"role":"assistant","content":"C"},{"type":"reasoning","summary":[]},{"role":"assistant","content":[{"type":"output_text","text":"D"}]},{"role":"user","content":"E"}]`, testModel},
	{"an agent's developer messages", `"instructions":"Base.","input":[{"id":"msg_a","type":"message","role":"developer","content":[{"type":"input_text","text":"One"}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"Two"}]},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment>"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"message","role":"developer","content":[{"type":"input_text","text":"Later"}]},{"role":"system","content":""}]`, testModel},
	{"only a developer message", `"input":[{"role":"developer","content":"Say hi."}]`, testModel},
	{"an unknown role", `"input":[{"role":"tool","content":"A"}]`, testModel},
	{"no content", `"input":[{"role":"user"}]`, testModel},
	{"no content of the assistant", `"input":[{"role":"user","content":"A"},{"role":"assistant","content":null},{"role":"user","content":"B"}]`, testModel},
	{"no type", `"input":[{"content":"A"}]`, testModel},
	{"nothing but an unknown type", `"input":[{"type":"dance"}]`, testModel},
	{"unknown types", `"input":[{"role":"user","content":"A"},{"type":"ghost_snapshot","ghost_commit":{"id":"c"}},{"type":"function_call","call_id":"c1","name":"look","arguments":"{}"},{"type":"context_compaction","encrypted_content":"x"},` + answer + `,{"type":"agent_message","author":"a","content":[{"type":"encrypted_content"}]}]`, testModel},
	{"an unknown type with a long id", `"input":[{"type":"dance","id":"` + strings.Repeat("x", 300) + `"}]`, testModel},
	{"no item", `"input":["A"]`, testModel},
	{"an unknown part", `"input":[{"role":"user","content":[{"type":"dance"}]}]`, testModel},
	{"a part without text", `"input":[{"role":"user","content":[{"type":"input_text"}]}]`, testModel},
	{"an image", `"input":[{"role":"user","content":[{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,` + testkit.Pixel + `"},{"type":"input_text","text":"What?"}]}]`, testModel},
	{"an image that is elsewhere", `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}]`, testModel},
	{"an image as a file", `"input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]`, testModel},
	{"an image of the assistant", `"input":[{"role":"assistant","content":[{"type":"input_image","image_url":"data:image/png;base64,` + testkit.Pixel + `"}]}]`, testModel},
	{"an image for a model without vision", `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + testkit.Pixel + `"}]}]`, request.Caps{}},
	{"a file", `"input":[{"role":"user","content":[{"type":"input_file","file_data":"AAAA","filename":"a.pdf"}]}]`, testModel},
	{"a function", `"tools":[` + look + `,` + jump + `],` + asked, testModel},
	{"a result", `"tools":[` + look + `],"input":[` + called + `,` + answer + `]`, testModel},
	{"a result of parts", `"tools":[` + look + `],"input":[` + called + `,{"type":"function_call_output","id":"fco_1","status":"completed","call_id":"c1","output":[{"type":"input_text","text":"See"},{"type":"input_image","image_url":"data:image/png;base64,` + testkit.Pixel + `"}]}]`, testModel},
	{"a tool loop as it was sent", `"tools":[` + look + `],"input":[{"role":"user","content":"Before"},{"type":"reasoning","id":"rs_0","summary":[],"content":[{"type":"reasoning_text","text":"Long ago"}]},{"role":"assistant","content":"Yes"},{"role":"user","content":"Now"},` +
		`{"id":"rs_1","type":"reasoning","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"I look."}],"encrypted_content":null},{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Let me see.","annotations":[],"logprobs":[]}]},` +
		`{"id":"fc_1","type":"function_call","status":"completed","call_id":"c1","name":"look","arguments":"{}"},{"id":"fc_2","type":"function_call","status":"completed","call_id":"c2","name":"look","arguments":""},` +
		`{"type":"function_call_output","call_id":"c2","output":"Two"},{"role":"developer","content":"Hurry."},{"type":"function_call_output","call_id":"c1","output":"One"}]`, testModel},
	{"a summary of a thought", `"input":[{"role":"user","content":"A"},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I call."}],"encrypted_content":"x"},{"type":"function_call","call_id":"c1","name":"look","arguments":"{}"},` + answer + `]`, testModel},
	{"calls one after the other", `"input":[` + called + `,` + answer + `,{"type":"function_call","call_id":"c2","name":"look","arguments":"{broken"},{"type":"function_call_output","call_id":"c2","output":null}]`, testModel},
	{"a call that was cut off", `"input":[{"role":"user","content":"A"},{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"a","status":"incomplete"},{"role":"user","content":"Go on."}]`, testModel},
	{"a result without a call", `"input":[{"role":"user","content":"Now"},` + answer + `]`, testModel},
	{"a call without a result", `"input":[` + called + `,{"role":"user","content":"Well?"}]`, testModel},
	{"a result of an earlier response", `"previous_response_id":"resp_1","input":[` + answer + `]`, testModel},
	{"a call without an id", `"input":[{"type":"function_call","name":"look","arguments":"{}"}]`, testModel},
	{"a custom tool's call", `"input":[{"role":"user","content":"A"},{"type":"custom_tool_call","call_id":"c1","name":"patch","input":"*** Begin"},{"type":"custom_tool_call_output","call_id":"c1","output":"ok"}]`, testModel},
	{"MCP calls as they were sent", `"input":[{"role":"user","content":"2+2?"},{"id":"mcpl_1","type":"mcp_list_tools","server_label":"maths","tools":[]},{"id":"mcp_1","type":"mcp_call","status":"completed","approval_request_id":null,"server_label":"maths","name":"add","arguments":"{\"x\":2}","output":"4","error":null},` +
		`{"id":"mcp_2","type":"mcp_call","server_label":"maths","name":"add","arguments":"{}","output":null,"error":{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"x is missing"}]}},{"type":"mcp_call","server_label":"maths","name":"add","arguments":"{}","error":"gone"},` +
		`{"type":"mcp_call","server_label":"maths","name":"add","arguments":"{}","error":{"type":"http_error","code":500,"message":"down"}},{"role":"user","content":"And?"}]`, testModel},
	{"references", `"input":[{"type":"item_reference","id":"rs_1"},{"id":"msg_1"},{"type":null,"id":"fc_1"},` + answer + `]`, testModel},
	{"a reference to nothing", `"input":[{"type":"item_reference"}]`, testModel},
	{"work of other servers", `"input":[{"role":"user","content":"A"},{"type":"web_search_call","id":"ws_1","status":"completed"},{"type":"local_shell_call","call_id":"c","action":{}},{"type":"local_shell_call_output","call_id":"c","output":""},{"role":"user","content":"B"}]`, testModel},
	{"a summary", `"input":[{"type":"compaction","id":"cmp_1","encrypted_content":"` + sealed("They said <hi>.") + `"},{"role":"user","content":"And now?"}]`, testModel},
	{"a summary of another server", `"input":[{"type":"compaction","encrypted_content":"gAAAA"},{"role":"user","content":"And now?"}]`, testModel},
	{"an unfinished answer", `"input":[{"role":"user","content":"Count."},{"role":"assistant","content":"1, 2,"}]`, testModel},
	{"namespaces", `"tools":[` + look + `,{"type":"namespace","name":"crm__","description":"Customers","tools":[` + look + `,{"type":"custom","name":"x"}]},{"type":"namespace","name":"empty","tools":[]}],"input":[{"role":"user","content":"A"},{"type":"function_call","call_id":"c1","namespace":"crm__","name":"look","arguments":"{}"},` + answer + `]`, testModel},
	{"tools of other types", `"tools":[{"type":"web_search"},{"type":"image_generation","output_format":"png"},{"type":"custom","name":"patch","format":{}},{"type":"local_shell"}],` + asked, testModel},
	{"custom tools", `"tools":[` + patch + `,` + look + `],"input":[{"role":"user","content":"A"},{"type":"custom_tool_call","call_id":"c1","name":"patch","input":"+\"a\"\n"},{"type":"custom_tool_call_output","call_id":"c1","output":"ok"}]`, testModel},
	{"a custom tool without a name", `"tools":[{"type":"custom"}],` + asked, testModel},
	{"a custom tool with half a grammar", `"tools":[{"type":"custom","name":"a","format":{"type":"grammar","syntax":"lark"}}],` + asked, testModel},
	{"tool_choice of a custom tool", `"tool_choice":{"type":"custom","name":"patch"},"tools":[` + patch + `,` + look + `],` + asked, testModel},
	{"tool_choice of a custom tool that isn't there", `"tool_choice":{"type":"custom","name":"x"},"tools":[` + look + `],` + asked, testModel},
	{"an allowed custom tool", `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"custom","name":"patch"}]},"tools":[` + patch + `,` + look + `],` + asked, testModel},
	{"a tool without a type", `"tools":[{"name":"look"}],` + asked, testModel},
	{"a function without a name", `"tools":[{"type":"function","function":{"name":"look"}}],` + asked, testModel},
	{"parameters of another type", `"tools":[{"type":"function","name":"look","parameters":[]}],` + asked, testModel},
	{"parameters of no object", `"tools":[{"type":"function","name":"look","parameters":{"type":"string"}}],` + asked, testModel},
	{"strict as a word", `"tools":[{"type":"function","name":"look","strict":"yes"}],` + asked, testModel},
	{"tool_choice none", `"tool_choice":"none","tools":[` + look + `],` + asked, testModel},
	{"tool_choice required", `"tool_choice":"required","tools":[` + look + `,` + jump + `],` + asked, testModel},
	{"tool_choice required with a limit", `"tool_choice":"required","max_output_tokens":50,"text":{"format":{"type":"json_object"}},"tools":[` + jump + `],` + asked, testModel},
	{"tool_choice required of none", `"tool_choice":"required",` + asked, testModel},
	{"tool_choice required after the answer has begun", `"tool_choice":"required","tools":[` + look + `],"input":[{"role":"user","content":"A"},{"role":"assistant","content":"B"}]`, testModel},
	{"tool_choice of a function", `"tool_choice":{"type":"function","name":"jump"},"tools":[` + look + `,` + jump + `],` + asked, testModel},
	{"tool_choice of a function in a namespace", `"tool_choice":{"type":"function","namespace":"crm","name":"look"},"tools":[{"type":"namespace","name":"crm","tools":[` + look + `]},` + jump + `],` + asked, testModel},
	{"tool_choice of an unknown function", `"tool_choice":{"type":"function","name":"fly"},"tools":[` + look + `,` + jump + `],` + asked, testModel},
	{"tool_choice of a server", `"tool_choice":{"type":"mcp","server_label":"maths"},"tools":[` + look + `,` + server + `],` + asked, testModel},
	{"tool_choice of a server's tool", `"tool_choice":{"type":"mcp","server_label":"maths","name":"sub"},"tools":[` + look + `,` + server + `],` + asked, testModel},
	{"tool_choice of a server's missing tool", `"tool_choice":{"type":"mcp","server_label":"maths","name":"fly"},"tools":[` + look + `,` + server + `],` + asked, testModel},
	{"tool_choice of an unknown server", `"tool_choice":{"type":"mcp","server_label":"files"},"tools":[` + server + `],` + asked, testModel},
	{"tool_choice of some tools", `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"look"},{"type":"mcp","server_label":"maths","name":"add"},{"type":"web_search"}]},"tools":[` + look + `,` + jump + `,` + server + `],` + asked, testModel},
	{"tool_choice required of some tools", `"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"look"}]},"tools":[` + look + `,` + jump + `],` + asked, testModel},
	{"tool_choice of no tools", `"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]},"tools":[` + look + `],` + asked, testModel},
	{"tool_choice of a hosted tool", `"tool_choice":{"type":"web_search_preview"},"tools":[{"type":"web_search_preview"}],` + asked, testModel},
	{"tool_choice of another type", `"tool_choice":1,` + asked, testModel},
	{"tool_choice of another word", `"tool_choice":"any","tools":[` + look + `],` + asked, testModel},
	{"one call at a time", `"parallel_tool_calls":false,"tools":[` + look + `],` + asked, testModel},
	{"a server", `"tools":[{"type":"mcp","server_label":"maths","server_url":"https://user:pass@h:8/mcp?key=1","authorization":"secret","headers":{"X-A":"b"},"allowed_tools":{"tool_names":["add"]},"server_description":"Sums","require_approval":{"never":{"tool_names":["add"]}}}],` + asked, testModel},
	{"a server that is configured", `"tools":[{"type":"mcp","server_label":"files","server_url":null,"allowed_tools":[],"require_approval":"never"}],` + asked, testModel},
	{"a server that is configured, with headers", `"tools":[{"type":"mcp","server_label":"files","headers":{"a":"b"}}],` + asked, testModel},
	{"a server without a label", `"tools":[{"type":"mcp","server_url":"https://h"}],` + asked, testModel},
	{"a server that wants approval", `"tools":[{"type":"mcp","server_label":"a","server_url":"https://h","require_approval":"always"}],` + asked, testModel},
	{"a server that wants some approval", `"tools":[{"type":"mcp","server_label":"a","server_url":"https://h","require_approval":{"always":{"tool_names":["b"]}}}],` + asked, testModel},
	{"a connector", `"tools":[{"type":"mcp","server_label":"a","connector_id":"connector_gmail"}],` + asked, testModel},
	{"a server whose tools only read", `"tools":[{"type":"mcp","server_label":"a","server_url":"https://h","allowed_tools":{"read_only":true}}],` + asked, testModel},
	{"a server with two tokens", `"tools":[{"type":"mcp","server_label":"a","server_url":"https://h","authorization":"t","headers":{"authorization":"u"}}],` + asked, testModel},
	{"a label twice", `"tools":[` + server + `,` + server + `],` + asked, testModel},
	{"a schema", `"text":{"format":{"type":"json_schema","name":"a","schema":{"type":"object","title":null},"strict":true,"description":null},"verbosity":"low"},` + asked, testModel},
	{"any object", `"text":{"format":{"type":"json_object"}},` + asked, testModel},
	{"any text", `"text":{"format":{"type":"text"}},` + asked, testModel},
	{"a format of nothing", `"text":{"format":{}},` + asked, testModel},
	{"a schema as in a chat", `"text":{"format":{"type":"json_schema","json_schema":{"schema":{}}}},` + asked, testModel},
	{"an unknown format", `"text":{"format":{"type":"grammar"}},` + asked, testModel},
	{"an invalid schema", `"text":{"format":{"type":"json_schema","name":"a","schema":{"$ref":"#/nowhere"}}},` + asked, testModel},
	{"no reasoning", `"reasoning":{"effort":"none","summary":null},` + asked, testModel},
	{"no reasoning of a model that always thinks", `"reasoning":{"effort":"none"},` + asked, request.Caps{Reasoning: []string{"low", "medium", "high"}}},
	{"minimal reasoning", `"reasoning":{"effort":"minimal","summary":"detailed"},` + asked, request.Caps{Reasoning: []string{"low", "medium", "high"}}},
	{"maximal reasoning", `"reasoning":{"effort":"max"},` + asked, testModel},
	{"reasoning of a model that doesn't", `"reasoning":{"effort":"high"},` + asked, request.Caps{Reasoning: []string{}}},
	{"reasoning of a model that nobody knows", `"reasoning":{"effort":"xhigh"},` + asked, request.Caps{}},
	{"an unknown effort", `"reasoning":{"effort":"huge"},` + asked, testModel},
	{"sampling", `"temperature":2,"top_p":0.5,"top_k":40,"min_p":0.1,"repeat_penalty":1.1,"presence_penalty":0.5,"frequency_penalty":0.25,"seed":7,"stop":["END"],"max_output_tokens":16,"max_tool_calls":3,` + asked, testModel},
	{"too hot", `"temperature":2.1,` + asked, testModel},
	{"half a token", `"max_output_tokens":0.5,` + asked, testModel},
	{"no tokens", `"max_output_tokens":0,` + asked, testModel},
	{"log probabilities", `"include":["message.output_text.logprobs","reasoning.encrypted_content"],"top_logprobs":3,` + asked, testModel},
	{"log probabilities of the chosen", `"include":["message.output_text.logprobs"],` + asked, testModel},
	{"log probabilities with tools", `"include":["message.output_text.logprobs"],"tools":[` + look + `],` + asked, testModel},
	{"too many log probabilities", `"top_logprobs":21,` + asked, testModel},
	{"include as a word", `"include":"all",` + asked, testModel},
	{"the background", `"background":true,"store":true,` + asked, testModel},
	{"the background without the store", `"background":true,"store":false,` + asked, testModel},
	{"a conversation object", `"conversation":"conv_1",` + asked, testModel},
	{"a prompt object", `"prompt":{"id":"pmpt_1"},` + asked, testModel},
	{"an id of another kind", `"previous_response_id":1,` + asked, testModel},
	{"truncation", `"truncation":"auto",` + asked, testModel},
	{"another truncation", `"truncation":"middle",` + asked, testModel},
	{"metadata", `"metadata":{"a":"b","c":""},"user":"u","safety_identifier":"s","prompt_cache_key":"k","service_tier":"flex",` + asked, testModel},
	{"metadata of numbers", `"metadata":{"a":1},` + asked, testModel},
	{"much metadata", `"metadata":` + manyPairs(17) + `,` + asked, testModel},
	{"a long key of metadata", `"metadata":{"` + string(bytes.Repeat([]byte("k"), 65)) + `":"v"},` + asked, testModel},
	{"what agents add", `"store":false,"stream":true,"include":["reasoning.encrypted_content"],"reasoning":{"summary":"auto"},"prompt_cache_key":"k","client_metadata":{"a":"b"},"stream_options":{"include_obfuscation":false},"context_management":[],` + asked, testModel},
}

// offers are the tools of a round: those of the client, and two of an MCP server.
func offers(r *Request) []request.Tool {
	tools := r.Functions
	for _, s := range r.Servers {
		for _, name := range []string{"add", "sub"} {
			tools = append(tools, request.Tool{Name: s.Label + "_" + name, Definition: `{"type":"function","function":{"name":"` + s.Label + "_" + name + `"}}`, Server: s.Label, Bare: name})
		}
	}
	return tools
}

// TestRequests compares what becomes of each request with a golden file: what the engine is sent in the first and in a later round, the
// servers, and what the response repeats; or else the error.
func TestRequests(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	seen := map[string]bool{}
	for _, rq := range requests {
		if seen[rq.name] {
			t.Errorf("%q is there twice", rq.name)
		}
		seen[rq.name] = true
		fmt.Fprintf(&got, "# %s\n%s\n", rq.name, rq.fields)
		describe(t, &got, rq.fields, rq.caps)
		got.WriteByte('\n')
	}
	testkit.Golden(t, "testdata/requests.golden", got.Bytes())
}

func describe(t *testing.T, w *bytes.Buffer, fields string, caps request.Caps) {
	t.Helper()
	r, err := Parse(testkit.Scan(t, `{"model":"m",`+fields+`}`), caps)
	if err != nil {
		fmt.Fprintf(w, "refused: %s\n", Errors{}.AppendError(nil, err, ""))
		return
	}
	first, chat, err := r.Upstream(r.Input, offers(r), true)
	if err != nil {
		fmt.Fprintf(w, "refused in the first round: %s\n", Errors{}.AppendError(nil, err, ""))
		return
	}
	fmt.Fprintf(w, "first: %s\n", first.Raw)
	later, laterChat, err := r.Upstream(r.Input, offers(r), false)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Raw, later.Raw) {
		fmt.Fprintf(w, "later: %s\n", later.Raw)
	}
	if laterChat.Forced {
		t.Errorf("a call is required in a later round: %s", fields)
	}
	fmt.Fprintf(w, "chat: forced %t, single %t, limit %d, thinks %t, logprobs %t, only chosen %t, stops %q\n", chat.Forced, chat.SingleCall, chat.Limit, chat.Thinks, chat.Logprobs, chat.OnlyChosen, chat.Stops)
	fmt.Fprintf(w, "state: previous %q, store %t, background %t, probe %t, %d tokens, %d calls\n", r.Previous, r.Store, r.Background, r.IsProbe, r.MaxOutput, r.MaxToolCalls)
	for _, s := range r.Servers {
		fmt.Fprintf(w, "server: {Param:%s Label:%s URL:%s Headers:%v Restricted:%t Allowed:%v}\n", s.Param, s.Label, s.URL, s.Headers, s.Restricted, s.Allowed)
	}
	for _, item := range InputItems(testID, r.Input) {
		fmt.Fprintf(w, "item: %s\n", item)
	}
	a := Answer{ID: testID, Created: someTime, Request: r}
	fmt.Fprintf(w, "echo: %s\n", gjson.GetBytes(a.AppendBody(nil), `@this.{instructions,max_output_tokens,metadata,reasoning,text,tool_choice,tools,temperature,top_logprobs,user}`).Raw)
}

// TestUpstream_LeavesTheRequestAsItIs: it is called in each round.
func TestUpstream_LeavesTheRequestAsItIs(t *testing.T) {
	t.Parallel()
	r, err := Parse(testkit.Scan(t, `{"tool_choice":"required","tools":[`+look+`],"input":[{"role":"user","content":"A"},{"role":"user","content":"B"}]}`), testModel)
	if err != nil {
		t.Fatal(err)
	}
	conversation := make([]translate.Item, len(r.Input), 8)
	copy(conversation, r.Input)
	spare := append(make([]translate.Part, 0, 2), conversation[0].Parts...)
	conversation[0].Parts = spare
	var before *jsonbody.Body
	for range 3 {
		body, chat, err := r.Upstream(conversation, r.Functions, true)
		if err != nil || !chat.Forced || r.Chat.Forced || r.Chat.Limit != 0 {
			t.Fatalf("%v, %+v", err, chat)
		}
		if before != nil && !bytes.Equal(before.Raw, body.Raw) {
			t.Errorf("%s, before it was %s", body.Raw, before.Raw)
		}
		before = body
	}
	if got := spare[:2][1].Text; got != "" {
		t.Errorf("%q is written over what may be another conversation's", got)
	}
}

// manyPairs returns an object with n strings.
func manyPairs(n int) string {
	pairs := make(map[string]string, n)
	for i := range n {
		pairs[fmt.Sprint(i)] = "v"
	}
	return string(jsonbody.AppendJSON(nil, pairs))
}

func TestParse_TooManyServers(t *testing.T) {
	t.Parallel()
	var tools []string
	for i := range request.MaxServers + 1 {
		tools = append(tools, fmt.Sprintf(`{"type":"mcp","server_label":"s%d","server_url":"https://h/mcp"}`, i))
	}
	_, err := Parse(testkit.Scan(t, `{"model":"m","input":"hi","tools":[`+strings.Join(tools, ",")+`]}`), request.Caps{})
	if err == nil || err.Param != "tools" || !strings.Contains(err.Message, fmt.Sprintf("at most %d MCP servers", request.MaxServers)) {
		t.Errorf("%+v", err)
	}
}
