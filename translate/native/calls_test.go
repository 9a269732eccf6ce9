package native

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

// TestStream_Calls: two rounds, the calls of the first interleaved; then an unknown name and arguments that don't fit.
func TestStream_Calls(t *testing.T) {
	t.Parallel()
	plugin, server := translate.Provider{Plugin: "mcp/files"}, translate.Provider{Server: "maths"}
	var s Stream
	out := s.Begin(nil, "m")
	for _, ev := range []translate.Event{
		translate.Round{Number: 1},
		translate.Text{Text: "Let me see."},
		translate.CallStart{Index: 0, ID: "a", Name: "read", Provider: plugin},
		translate.CallStart{Index: 1, ID: "b", Name: "add", Provider: server},
		translate.CallArgs{Index: 1, Text: `{"x":`},
		translate.CallArgs{Index: 0, Text: `{"path":"p"}`},
		translate.CallArgs{Index: 1, Text: `1}`},
		translate.CallDone{Index: 1},
		translate.CallDone{Index: 0},
		translate.Usage{Prompt: 5, Completion: 3},
		translate.Finish{Reason: translate.FinishToolCalls},
		translate.CallResult{Index: 0, Output: `[{"type":"text","text":"hello"}]`},
		translate.CallResult{Index: 1, Output: `[]`},
		translate.Round{Number: 2},
		translate.CallStart{Index: 0, ID: "c", Name: "add", Provider: server},
		translate.CallArgs{Index: 0, Text: `{"x":"y"}`},
		translate.CallDone{Index: 0},
		translate.Usage{Prompt: 9, Completion: 4},
		translate.Finish{Reason: translate.FinishToolCalls},
		translate.CallInvalid{Index: 0, Name: "add", Reason: "x is no number", ArgumentsBad: true},
		translate.CallInvalid{Index: 1, Name: "fly", Reason: "Cannot find tool with name fly."},
		translate.CallStart{Index: 2, ID: "d", Name: "the_clients"}, // the native chat has none
		translate.CallArgs{Index: 2, Text: `{}`},
		translate.CallDone{Index: 2},
		translate.Round{Number: 3},
		translate.Text{Text: "Done."},
		translate.Usage{Prompt: 20, Completion: 2},
		translate.Finish{Reason: translate.FinishStop},
	} {
		out = s.Append(out, ev)
	}
	out = s.End(out)
	read := `"tool":"read","arguments":{"path":"p"},`
	readBy, addBy := `"provider_info":{"type":"plugin","plugin_id":"mcp/files"}`, `"provider_info":{"type":"ephemeral_mcp","server_label":"maths"}`
	failed := `"reason":"x is no number","metadata":{"type":"invalid_arguments","tool_name":"add","arguments":{"x":"y"},` + addBy + `}`
	unknown := `"reason":"Cannot find tool with name fly.","metadata":{"type":"invalid_name","tool_name":"fly"}`
	want := []string{
		`{"type":"chat.start","model_instance_id":"m"}`,
		`{"type":"prompt_processing.start"}`, `{"type":"prompt_processing.end"}`,
		`{"type":"message.start"}`, `{"type":"message.delta","content":"Let me see."}`, `{"type":"message.end"}`,
		`{"type":"tool_call.start","tool":"read",` + readBy + `}`,
		`{"type":"tool_call.start","tool":"add",` + addBy + `}`,
		`{"type":"tool_call.arguments","tool":"add","arguments":{"x":1},` + addBy + `}`,
		`{"type":"tool_call.arguments",` + read + readBy + `}`,
		`{"type":"tool_call.success",` + read + `"output":"[{\"type\":\"text\",\"text\":\"hello\"}]",` + readBy + `}`,
		`{"type":"tool_call.success","tool":"add","arguments":{"x":1},"output":"[]",` + addBy + `}`,
		`{"type":"prompt_processing.start"}`, `{"type":"prompt_processing.end"}`,
		`{"type":"tool_call.start","tool":"add",` + addBy + `}`,
		`{"type":"tool_call.arguments","tool":"add","arguments":{"x":"y"},` + addBy + `}`,
		`{"type":"tool_call.failure",` + failed + `}`,
		`{"type":"tool_call.failure",` + unknown + `}`,
		`{"type":"prompt_processing.start"}`, `{"type":"prompt_processing.end"}`,
		`{"type":"message.start"}`, `{"type":"message.delta","content":"Done."}`, `{"type":"message.end"}`,
		`{"type":"chat.end","result":{"model_instance_id":"m","output":[{"type":"message","content":"Let me see."},` +
			`{"type":"tool_call",` + read + `"output":"[{\"type\":\"text\",\"text\":\"hello\"}]",` + readBy + `},` +
			`{"type":"tool_call","tool":"add","arguments":{"x":1},"output":"[]",` + addBy + `},` +
			`{"type":"invalid_tool_call",` + failed + `},{"type":"invalid_tool_call",` + unknown + `},` +
			`{"type":"message","content":"Done."}],` +
			`"stats":{"input_tokens":20,"total_output_tokens":9,"reasoning_output_tokens":0,"tokens_per_second":0,"time_to_first_token_seconds":0}}}`,
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			got = append(got, strings.TrimSuffix(data, "\n"))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStream_CallsStayApart: whatever the engine does, each item ends before the next event of another, and no arguments get
// into another call.
func TestStream_CallsStayApart(t *testing.T) {
	t.Parallel()
	by := translate.Provider{Plugin: "p"}
	var s Stream
	out := s.Begin(nil, "m")
	for _, ev := range []translate.Event{
		translate.Round{Number: 1},
		translate.CallArgs{Index: 3, Text: "x"},
		translate.CallDone{Index: 3},
		translate.CallResult{Index: 3, Output: "x"},
		translate.CallStart{Index: 0, ID: "a", Name: "a", Provider: by},
		translate.CallArgs{Index: 0, Text: `{"a":1}`},
		translate.Text{Text: "t"},
		translate.CallDone{Index: 0},
		translate.CallStart{Index: 0, ID: "b", Name: "b", Provider: by},
		translate.CallArgs{Index: 0, Text: `{"b":2}`},
		translate.CallDone{Index: 0},
		translate.Finish{Reason: translate.FinishToolCalls},
	} {
		out = s.Append(out, ev)
	}
	const provider = `,"provider_info":{"type":"plugin","plugin_id":"p"}}`
	want := []string{
		`{"type":"chat.start","model_instance_id":"m"}`,
		`{"type":"prompt_processing.start"}`, `{"type":"prompt_processing.end"}`,
		`{"type":"tool_call.start","tool":"a"` + provider,
		`{"type":"message.start"}`, `{"type":"message.delta","content":"t"}`, `{"type":"message.end"}`,
		`{"type":"tool_call.arguments","tool":"a","arguments":{"a":1}` + provider,
		`{"type":"tool_call.start","tool":"b"` + provider,
		`{"type":"tool_call.arguments","tool":"b","arguments":{"b":2}` + provider,
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			got = append(got, strings.TrimSuffix(data, "\n"))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStream_FailedCall: that a tool reports an error is in the event, in the answer, and in what is stored of it.
func TestStream_FailedCall(t *testing.T) {
	t.Parallel()
	var s Stream
	out := s.Begin(nil, "m")
	for _, ev := range []translate.Event{
		translate.Round{Number: 1},
		translate.CallStart{Index: 0, ID: "a", Name: "a", Provider: translate.Provider{Plugin: "p"}},
		translate.CallArgs{Index: 0, Text: `{}`},
		translate.CallDone{Index: 0},
		translate.CallResult{Index: 0, Output: `[]`, IsError: true},
	} {
		out = s.Append(out, ev)
	}
	const failed = `"tool":"a","arguments":{},"output":"[]","is_error":true,"provider_info":{"type":"plugin","plugin_id":"p"}}`
	if want := `{"type":"tool_call.success",` + failed; !strings.Contains(string(out), want) {
		t.Errorf("%s", out)
	}
	if got := Output(s.Items()); len(got) != 1 || string(got[0]) != `{"type":"tool_call",`+failed {
		t.Errorf("%s", got)
	}
}
