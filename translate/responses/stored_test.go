package responses

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

func TestItemID(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 4095, firstInput, firstInput + request.MaxMessages} {
		for _, prefix := range prefixes {
			id := ItemID(testID, prefix, n)
			if got, number, ok := ResponseOf(id); got != testID || number != n || !ok {
				t.Errorf("%s: %s, %d, %t", id, got, number, ok)
			}
		}
	}
	for _, id := range []string{"", "msg_", "msg_000001", "msg_xyz000001", "call_0a000001", "resp_0a000001", "msg_0a00000-1", "msg_0a 000001", "0a000001", "msg_0A000001"} {
		if got, _, ok := ResponseOf(id); ok {
			t.Errorf("%s is of %s", id, got)
		}
	}
}

// TestAppendStored: a response is also shown while it runs in the background, and after the server died in the middle of it.
func TestAppendStored(t *testing.T) {
	t.Parallel()
	s := newStream(t, `{"input":"Hi","background":true,"instructions":"Be."}`)
	s.Queue()
	stored := Stored{ID: testID, Model: "lmcaddy/tinychat", Created: someTime, Echo: s.Echo(), Usage: translate.Usage{Prompt: 3}}
	for status, want := range map[Status]string{
		Queued:     `{"status":"queued","error":null,"incomplete_details":null,"usage":null,"instructions":"Be.","completed_at":null}`,
		InProgress: `{"status":"in_progress","error":null,"incomplete_details":null,"usage":null,"instructions":"Be.","completed_at":null}`,
		Failed: `{"status":"failed","error":{"code":"server_error","message":"The response was lost when the server stopped. Send the request again."},"incomplete_details":null,` +
			`"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":0,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":3},"instructions":"Be.","completed_at":null}`,
	} {
		stored.Status = status
		got := gjson.GetBytes(AppendStored(nil, stored), "@this.{status,error,incomplete_details,usage,instructions,completed_at}").Raw
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", status, diff)
		}
	}
	if got := string(s.AppendBody(nil)); got != string(AppendStored(nil, Stored{ID: testID, Model: "lmcaddy/tinychat", Created: someTime, Status: Queued, Echo: stored.Echo})) {
		t.Errorf("a queued response: %s", got)
	}
}

// TestAppendStored_Cancelled: a store that has no such status keeps it in what is repeated.
func TestAppendStored_Cancelled(t *testing.T) {
	t.Parallel()
	tr := transcripts["cancelled"]
	s, _ := tr.stream(t)
	stored := Stored{ID: testID, Created: someTime, Status: Incomplete, Echo: s.Echo(), Out: s.Items()}
	if got := gjson.GetBytes(AppendStored(nil, stored), "@this.{status,incomplete_details}").Raw; got != `{"status":"cancelled","incomplete_details":null}` {
		t.Error(got)
	}
}

// TestAnswer_ARoundAgain: a round that is begun again counts once, and leaves the rounds before it alone.
func TestAnswer_ARoundAgain(t *testing.T) {
	t.Parallel()
	a := newStream(t, oneServer).Answer
	for _, ev := range events(lists, translate.Round{Number: 1}, mcpCall(0, `{}`), translate.Usage{Prompt: 5, Completion: 3}, translate.Finish{Reason: translate.FinishToolCalls},
		translate.CallResult{Index: 0, Output: `[]`}, translate.Round{Number: 2}, translate.Prompt{Total: 9}, translate.Text{Text: "Lost"}, translate.Fault{Err: translate.BrokenOff()},
		translate.Round{Number: 2}, translate.Reasoning{Text: "Again"}, translate.Text{Text: "Done."}, translate.Usage{Prompt: 9, Completion: 2}, translate.Finish{Reason: translate.FinishStop}) {
		a.Add(ev)
	}
	a.End(nil)
	body := a.AppendBody(nil)
	if got := gjson.GetBytes(body, "output.#.type").Raw; got != `["mcp_list_tools","mcp_call","reasoning","message"]` {
		t.Errorf("%s in %s", got, body)
	}
	if diff := cmp.Diff(translate.Usage{Prompt: 14, Completion: 5}, a.Usage()); diff != "" || !a.IsComplete() || a.IsEmpty() {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if strings.Contains(string(body), "Lost") || !strings.HasSuffix(gjson.GetBytes(body, "output.3.id").Str, "000003") {
		t.Errorf("%s", body)
	}
}

func TestIsEcho(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		string(newStream(t, "").Echo()): true,
		"":                              false, "null": false, "{}": false, `{"dialect":"native"}`: false, `[]`: false,
	} {
		if IsEcho(json.RawMessage(raw)) != want {
			t.Errorf("%s: %t", raw, !want)
		}
	}
}

// TestEcho_HasNoSecrets: neither what clients see nor what is stored.
func TestEcho_HasNoSecrets(t *testing.T) {
	t.Parallel()
	s := newStream(t, `{"input":"Hi","tools":[{"type":"mcp","server_label":"a","server_url":"https://SECRET:SECRET@h/SECRET?k=SECRET#SECRET","headers":{"X-Key":"SECRET"},"authorization":"SECRET"}]}`)
	if got := s.Request.Servers[0]; got.Headers["Authorization"] != "Bearer SECRET" || got.Headers["X-Key"] != "SECRET" || !strings.Contains(got.URL, "SECRET") {
		t.Fatalf("%+v", got)
	}
	for _, shown := range [][]byte{s.Begin(nil, true), s.End(nil, nil), s.AppendBody(nil), s.Echo()} {
		if strings.Contains(string(shown), "SECRET") || !strings.Contains(string(shown), `"https://h/<redacted>"`) {
			t.Errorf("%s", shown)
		}
	}
}

func TestMasked(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"": "", "https://h": "https://h", "https://h/": "https://h", "https://u@h:8/?": "https://h:8", "https://h?k=v": "https://h/<redacted>", "http://[::1]:3/mcp": "http://[::1]:3/<redacted>",
		"mailto:a@b": "", "::": "", "/path": "",
	} {
		if got := masked(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// TestContinue: what a response says is given back by the store or by the client, with the same effect on the next request.
func TestContinue(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"text", "reasoning", "function-calls", "mcp", "mcp-server-died", "logprobs"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := transcripts[name]
			s, _ := tr.stream(t)
			r := s.Request
			items := restored(t, s.Items())
			input := `{"role":"user","content":"` + translate.JoinTexts(r.Input[0].Parts) + `"}`
			for _, item := range OutputItems(items) {
				input += "," + string(item)
			}
			next := ""
			for _, item := range items {
				if item.Kind == translate.ItemCall && item.Provider == nil {
					next += `,{"type":"function_call_output","call_id":"` + item.CallID + `","output":"ok"}`
				}
			}
			again, err := Parse(testkit.Scan(t, `{"input":[`+input+next+`]}`), testModel)
			if err != nil {
				t.Fatal(err)
			}
			byItems, _, err := again.Upstream(again.Input, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			whole := append(append([]translate.Item{}, r.Input...), items...)
			for _, item := range again.Input {
				if item.Kind == translate.ItemResult && item.Tool == "" {
					whole = append(whole, item)
				}
			}
			if err := CheckCalls(whole); err != nil {
				t.Fatal(err)
			}
			byStore, _, err := again.Upstream(whole, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			// The engine's ids of MCP calls aren't told, and parallel ones come back one after the other.
			roles := func(body []byte) (said []string) {
				for _, m := range gjson.GetBytes(body, "messages").Array() {
					said = append(said, m.Get("role").Str+" "+m.Get("content").Str+m.Get("tool_calls.#.function.arguments").Raw+m.Get("reasoning_content").Str)
				}
				return said
			}
			if name == "mcp" {
				if got := len(roles(byStore.Raw)); got != 5 {
					t.Errorf("%d messages: %s", got, byStore.Raw)
				}
				return
			}
			if diff := cmp.Diff(roles(byStore.Raw), roles(byItems.Raw)); diff != "" {
				t.Errorf("(-stored +sent):\n%s", diff)
			}
		})
	}
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	made := AppendCompaction(nil, testID, someTime, []translate.Item{SummaryItem(testID, "They said \"hi\".")}, translate.Usage{Prompt: 9, Completion: 3})
	again, err := Parse(testkit.Scan(t, `{"input":[`+gjson.GetBytes(made, "output.0").Raw+`]}`), testModel)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]translate.Item{SummaryItem(testID, "They said \"hi\".")}, again.Input); diff != "" {
		t.Errorf("(-made +sent again):\n%s", diff)
	}
	if got := gjson.GetBytes(made, "@this.{id,object,created_at,usage.total_tokens}").Raw; got != `{"id":"`+testID+`","object":"response.compaction","created_at":1800000000,"total_tokens":12}` {
		t.Errorf("%s", made)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err    translate.Error
		status int
		want   string
	}{
		"an MCP server":         {translate.Error{Kind: translate.KindMCPFailed, Param: "tools[0]", Message: "m"}, 424, `{"error":{"message":"m","type":"external_connector_error","param":"tools","code":"http_error"}}`},
		"one of mcp.json":       {translate.Error{Kind: translate.KindPluginFailed, Message: "m"}, 424, `{"error":{"message":"m","type":"external_connector_error","param":"tools","code":"http_error"}}`},
		"an unknown server":     {translate.Error{Kind: translate.KindPluginFailed, Code: "unknown_plugin", Param: "tools[0]", Message: "m"}, 400, `{"error":{"message":"m","type":"invalid_request_error","param":"tools[0]","code":"unknown_plugin"}}`},
		"a previous response":   {translate.Error{Kind: translate.KindResponseNotFound, Code: previousNotFound, Param: "previous_response_id", Message: "m"}, 400, `{"error":{"message":"m","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`},
		"a response":            {translate.Error{Kind: translate.KindResponseNotFound, Message: "m"}, 404, `{"error":{"message":"m","type":"invalid_request_error","param":null,"code":null}}`},
		"a model":               {translate.Error{Kind: translate.KindModelNotFound, Param: "model", Message: "m"}, 404, `{"error":{"message":"m","type":"invalid_request_error","param":"model","code":"model_not_found"}}`},
		"a queue":               {translate.Error{Kind: translate.KindQueueFull, Message: "m"}, 429, `{"error":{"message":"m","type":"rate_limit_exceeded","param":null,"code":"queue_full"}}`},
		"an engine":             {*translate.Nonsense(), 502, `{"error":{"message":"The engine's answer can't be read. Its log says more.","type":"server_error","param":null,"code":"engine_failed"}}`},
		"a field":               {*translate.Missing("input"), 400, `{"error":{"message":"\"input\" is required","type":"invalid_request_error","param":"input","code":"missing_required_parameter"}}`},
		"a prompt that is long": {translate.Error{Kind: translate.KindContextOverflow, Param: "input", Message: "m"}, 400, `{"error":{"message":"m","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (Errors{}).Status(&tt.err); got != tt.status {
				t.Errorf("status %d, want %d", got, tt.status)
			}
			if diff := cmp.Diff(tt.want, string(Errors{}.AppendError(nil, &tt.err, "id"))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithDefaults(t *testing.T) {
	t.Parallel()
	defaults := map[string]json.RawMessage{
		"temperature": json.RawMessage("0.5"), "max_tokens": json.RawMessage("7"), "system_prompt": json.RawMessage(`"Be."`), "reasoning_effort": json.RawMessage(`"low"`),
		"response_format": json.RawMessage(`{"type":"json_object"}`), "top_k": json.RawMessage("9"),
	}
	for body, want := range map[string]string{
		`{"preset":"p","input":"Hi"}`: `{"input":"Hi","instructions":"Be.","max_output_tokens":7,"reasoning":{"effort":"low"},"temperature":0.5,"top_k":9}`,
		`{"input":"Hi","instructions":"X","temperature":1,"max_output_tokens":3,"reasoning":{},"top_k":null}`: `{"input":"Hi","instructions":"X","temperature":1,"max_output_tokens":3,"reasoning":{},"top_k":9}`,
		`{"input":[{"role":"developer","content":"X"}],"temperature":1,"top_k":1,"reasoning":{}}`:             `{"input":[{"role":"developer","content":"X"}],"temperature":1,"top_k":1,"reasoning":{},"max_output_tokens":7}`,
	} {
		got, err := WithDefaults(testkit.Scan(t, body), "preset", defaults)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got.Raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

// TestStream_TheAnswerEndsFirst: it is stored before the client gets the end of the stream, and may turn out not to be.
func TestStream_TheAnswerEndsFirst(t *testing.T) {
	t.Parallel()
	for name, tr := range transcripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tr.cancel {
				return
			}
			_, want := tr.stream(t)
			s := newStream(t, tr.request)
			dst := s.Begin(nil, tr.queued)
			for _, ev := range tr.events {
				dst = s.Append(dst, ev)
			}
			s.Answer.End(tr.err)
			status := s.Status()
			dst = s.End(dst, tr.err)
			if diff := cmp.Diff(string(want), string(dst)); diff != "" || s.Status() != status {
				t.Errorf("(-at once +first) %s:\n%s", status, diff)
			}
		})
	}
	s := newStream(t, "")
	dst := s.Begin(nil, false)
	for _, ev := range hello {
		dst = s.Append(dst, ev)
	}
	s.Answer.End(nil)
	dst = s.End(dst, &translate.Error{Kind: translate.KindDiskFull, Code: "not_stored", Message: "The disk is full."})
	if problems := testkit.ResponsesProblems(dst); len(problems) > 0 || s.Status() != Failed {
		t.Errorf("%s, %v:\n%s", s.Status(), problems, dst)
	}
}
