package responses

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

var (
	testID   = "resp_" + strings.Repeat("0a", 24)
	someTime = time.Unix(1_800_000_000, 0)
)

// transcript is an answer's events, for a golden file.
type transcript struct {
	request string // without model
	events  []translate.Event
	err     *translate.Error
	cancel  bool
	queued  bool
}

// newStream returns a stream for a request.
func newStream(t testing.TB, body string) *Stream {
	t.Helper()
	if body == "" {
		body = `{"input":"Hi"}`
	}
	r, err := Parse(testkit.Scan(t, body), request.Caps{Reasoning: []string{"off", "on"}})
	if err != nil {
		t.Fatal(err)
	}
	return &Stream{Answer: Answer{ID: testID, Created: someTime, Model: "lmcaddy/tinychat", Request: r, Now: func() time.Time { return someTime.Add(2 * time.Second) }}}
}

func (tr *transcript) end(a *Answer) {
	if tr.cancel {
		a.Cancel()
	} else {
		a.End(tr.err)
	}
}

func (tr *transcript) stream(t testing.TB) (*Stream, []byte) {
	t.Helper()
	s := newStream(t, tr.request)
	dst := s.Begin(nil, tr.queued)
	for _, ev := range tr.events {
		dst = s.Append(dst, ev)
	}
	if tr.cancel {
		return s, s.Cancel(dst)
	}
	return s, s.End(dst, tr.err)
}

var (
	hello = []translate.Event{
		translate.Round{Number: 1},
		translate.Prompt{Total: 9, Cached: 4, Processed: 9},
		translate.FirstToken{After: time.Second},
		translate.Text{Text: "Hello"},
		translate.Text{Text: " <you>!\n"},
		translate.Usage{Prompt: 9, Cached: 4, Completion: 3},
		translate.Finish{Reason: translate.FinishStop},
	}
	maths = translate.Provider{Server: "maths"}
	lists = translate.ToolList{Server: "maths", Tools: json.RawMessage(`[{"name":"add","input_schema":{"type":"object"},"description":"Adds"}]`)}
)

const (
	twoTools = `{"input":"2+2?","instructions":"Be brief.","metadata":{"a":"b"},"store":true,"tools":[{"type":"function","name":"look","parameters":null,"strict":null},` +
		`{"type":"namespace","name":"mcp__db","tools":[{"type":"function","name":"query","description":"Asks","parameters":{"type":"object"},"strict":false}]},{"type":"web_search"}]}`
	twoCustom = `{"input":"Hi","tools":[{"type":"custom","name":"patch","description":"Edits","format":{"type":"grammar","syntax":"lark","definition":"start: \"a\""}},` +
		`{"type":"namespace","name":"crm","tools":[{"type":"custom","name":"note"}]}],"tool_choice":{"type":"custom","name":"patch"}}`
	oneServer = `{"input":"2+2?","previous_response_id":"resp_00","tools":[{"type":"mcp","server_label":"maths","server_url":"https://u:p@h.example:8/secret?k=1","headers":{"Authorization":"Bearer t"},"allowed_tools":["add"],"require_approval":"never"}]}`
)

func mcpCall(index int, args string) []translate.Event {
	return []translate.Event{
		translate.CallStart{Index: index, ID: "call_" + string(rune('a'+index)), Name: "add", Provider: maths},
		translate.CallArgs{Index: index, Text: args[:1]},
		translate.CallArgs{Index: index, Text: args[1:]},
		translate.CallDone{Index: index},
	}
}

func events(parts ...any) (all []translate.Event) {
	for _, part := range parts {
		if list, ok := part.([]translate.Event); ok {
			all = append(all, list...)
		} else {
			all = append(all, part.(translate.Event))
		}
	}
	return all
}

var transcripts = map[string]transcript{
	"text":                   {events: hello},
	"text-in-the-background": {events: hello, queued: true, request: `{"input":"Hi","background":true,"max_output_tokens":99,"temperature":0.20,"truncation":"auto","user":"u","reasoning":{"summary":"auto","effort":"minimal"}}`},
	"nothing":                {events: events(translate.Round{Number: 1}, translate.Usage{Prompt: 5}, translate.Finish{Reason: translate.FinishStop})},
	"reasoning": {events: events(translate.Round{Number: 1}, translate.Reasoning{Text: "Hm"}, translate.Reasoning{Text: "."}, translate.Text{Text: "Yes"},
		translate.Usage{Prompt: 5, Completion: 4, Reasoning: 2}, translate.Finish{Reason: translate.FinishStop})},
	"logprobs": {request: `{"input":"Hi","include":["message.output_text.logprobs","x"],"top_logprobs":1}`, events: events(translate.Round{Number: 1},
		translate.Text{Text: "a"}, translate.Logprobs{Content: json.RawMessage(`[{"token":"a","bytes":[97],"logprob":-0.5,"top_logprobs":[{"token":"b","logprob":null}]}]`)},
		translate.Text{Text: "b"}, translate.Logprobs{Content: json.RawMessage(`[{"token":"b","logprob":-1,"top_logprobs":[]}]`)},
		translate.Text{Text: "c"}, translate.Finish{Reason: translate.FinishStop})},
	"custom-tool-calls": {request: twoCustom, events: events(translate.Round{Number: 1},
		translate.CallStart{Index: 0, ID: "a1", Name: "patch"}, translate.CallArgs{Index: 0, Text: `{"inp`}, translate.CallArgs{Index: 0, Text: `ut":"*** Begin\`},
		translate.CallArgs{Index: 0, Text: `n<a> \ud83d`}, translate.CallArgs{Index: 0, Text: `\ude00"`}, translate.CallArgs{Index: 0, Text: `}`}, translate.CallDone{Index: 0},
		translate.CallStart{Index: 1, ID: "b1", Name: "crm__note"}, translate.CallArgs{Index: 1, Text: `"any text"`}, translate.CallDone{Index: 1},
		translate.CallStart{Index: 2, ID: "c1", Name: "patch"}, translate.CallArgs{Index: 2, Text: `{"input":"cut \u00`}, translate.CallDone{Index: 2},
		translate.Usage{Prompt: 9, Completion: 7}, translate.Finish{Reason: translate.FinishLength})},
	"function-calls": {request: twoTools, events: events(translate.Round{Number: 1}, translate.Text{Text: "Let me look."},
		translate.CallStart{Index: 0, ID: "a1", Name: "look"}, translate.CallDone{Index: 0},
		translate.CallStart{Index: 1, ID: "b1", Name: "mcp__db__query"}, translate.CallArgs{Index: 1, Text: `{"q":`}, translate.CallArgs{Index: 1, Text: `"<x>"}`}, translate.CallDone{Index: 1},
		translate.Usage{Prompt: 50, Completion: 20}, translate.Finish{Reason: translate.FinishToolCalls})},
	"function-call-cut": {request: twoTools, events: events(translate.Round{Number: 1},
		translate.CallStart{Index: 0, ID: "a1", Name: "look"}, translate.CallArgs{Index: 0, Text: `{"q":`}, translate.CallDone{Index: 0},
		translate.Usage{Prompt: 50, Completion: 20}, translate.Finish{Reason: translate.FinishLength})},
	"single-call": {request: strings.Replace(twoTools, `"store":true`, `"parallel_tool_calls":false`, 1), events: events(translate.Round{Number: 1},
		translate.CallStart{Index: 0, ID: "a1", Name: "look"}, translate.CallArgs{Index: 0, Text: `{}`}, translate.CallDone{Index: 0},
		translate.CallStart{Index: 1, ID: "b1", Name: "look"}, translate.CallArgs{Index: 1, Text: `{}`}, translate.CallDone{Index: 1}, translate.Finish{Reason: translate.FinishToolCalls})},
	"mcp": {request: oneServer, events: events(lists, translate.Round{Number: 1}, translate.Reasoning{Text: "Sum"}, mcpCall(0, `{"x":2,"y":2}`), mcpCall(1, `{"x":1}`),
		translate.Usage{Prompt: 30, Cached: 10, Completion: 9, Reasoning: 1}, translate.Finish{Reason: translate.FinishToolCalls},
		translate.CallResult{Index: 1, Output: `[{"type":"text","text":"y is missing"}]`, Given: []translate.Part{{Text: "y is missing"}}, IsError: true},
		translate.CallResult{Index: 0, Output: `[{"type":"text","text":"4"},{"type":"text","text":"four"}]`, Given: []translate.Part{{Text: "4\nfour"}}},
		translate.Round{Number: 2}, translate.Text{Text: "It is 4."}, translate.Usage{Prompt: 60, Cached: 39, Completion: 5}, translate.Finish{Reason: translate.FinishStop})},
	"mcp-invalid": {request: oneServer, events: events(lists, translate.Round{Number: 1}, mcpCall(0, `{"x":"2"}`),
		translate.CallInvalid{Index: 0, ID: "call_a", Name: "add", Reason: "x is no number", ArgumentsBad: true},
		translate.CallInvalid{Index: 1, ID: "call_b", Name: "fly", Reason: "Cannot find tool with name fly."},
		translate.Finish{Reason: translate.FinishToolCalls}, translate.Round{Number: 2}, mcpCall(0, `{bad`),
		translate.CallInvalid{Index: 0, ID: "call_a", Name: "add", Reason: "The arguments are not a valid JSON object.", ArgumentsBad: true}, translate.Finish{Reason: translate.FinishToolCalls},
		translate.Round{Number: 3}, translate.Text{Text: "I can't."}, translate.Finish{Reason: translate.FinishStop})},
	"mcp-server-died": {request: oneServer, events: events(lists, translate.Round{Number: 1}, mcpCall(0, `{"x":2}`), translate.Finish{Reason: translate.FinishToolCalls},
		translate.Trouble{Err: &translate.Error{Kind: translate.KindMCPFailed, Message: "The MCP server \"maths\" closed the connection."}},
		translate.CallResult{Index: 0, Output: `[{"type":"text","text":"The MCP server \"maths\" closed the connection."}]`, Given: []translate.Part{{Text: `The MCP server "maths" closed the connection.`}}, IsError: true},
		translate.Round{Number: 2}, translate.Text{Text: "It is gone."}, translate.Finish{Reason: translate.FinishStop})},
	"mcp-image": {request: oneServer, events: events(lists, translate.Round{Number: 1}, mcpCall(0, `{}`), translate.Finish{Reason: translate.FinishToolCalls},
		translate.CallResult{Index: 0, Output: `[{"type":"image","data":"AAAA","mimeType":"image/png"}]`, Given: []translate.Part{{Text: "[image]"}}},
		translate.Round{Number: 2}, translate.Text{Text: "A dot."}, translate.Finish{Reason: translate.FinishStop})},
	"mcp-cut-off": {request: oneServer, events: events(lists, translate.Round{Number: 1}, mcpCall(0, `{"x":2}`), translate.Finish{Reason: translate.FinishLength})},
	"mcp-list-failed": {
		request: oneServer, events: events(translate.ToolList{Server: "maths", Err: &translate.Error{Message: "The MCP server \"maths\" can't be reached."}}),
		err: &translate.Error{Kind: translate.KindMCPFailed, Param: "tools[0]", Message: "The MCP server \"maths\" can't be reached."},
	},
	"mcp-and-function": {request: `{"input":"Hi","tools":[{"type":"function","name":"look"},{"type":"mcp","server_label":"maths","server_url":"http://h/","authorization":"t"}]}`, events: events(lists, translate.Round{Number: 1}, mcpCall(0, `{"x":2}`),
		translate.CallStart{Index: 1, ID: "b1", Name: "look"}, translate.CallArgs{Index: 1, Text: `{}`}, translate.CallDone{Index: 1}, translate.Finish{Reason: translate.FinishToolCalls},
		translate.CallResult{Index: 0, Output: `[]`})},
	"length":             {events: events(translate.Round{Number: 1}, translate.Text{Text: "Once"}, translate.Usage{Prompt: 9, Completion: 1}, translate.Finish{Reason: translate.FinishLength})},
	"length-in-thinking": {events: events(translate.Round{Number: 1}, translate.Reasoning{Text: "Once"}, translate.Finish{Reason: translate.FinishLength})},
	"failed-at-once":     {err: &translate.Error{Kind: translate.KindUnavailable, Message: "The model can't be loaded."}},
	"failed-in-text":     {events: events(translate.Round{Number: 1}, translate.Text{Text: "Hel"}, translate.Fault{Err: translate.BrokenOff()}), err: translate.BrokenOff()},
	"failed-in-call":     {request: twoTools, events: events(translate.Round{Number: 1}, translate.CallStart{Index: 0, ID: "a1", Name: "look"}, translate.CallArgs{Index: 0, Text: `{"q`}, translate.Fault{Err: translate.BrokenOff()}), err: translate.BrokenOff()},
	"overflow":           {events: events(translate.Round{Number: 1}), err: translate.Overflow(9000, 8192)},
	"retried":            {events: events(translate.Round{Number: 1}, translate.Prompt{Total: 9, Processed: 2}, translate.Usage{Prompt: 7}, hello)},
	"retried-second-round": {request: oneServer, events: events(lists, translate.Round{Number: 1}, mcpCall(0, `{}`), translate.Usage{Prompt: 5, Completion: 2}, translate.Finish{Reason: translate.FinishToolCalls},
		translate.CallResult{Index: 0, Output: `[]`}, translate.Round{Number: 2}, translate.Prompt{Total: 8}, translate.Round{Number: 2}, translate.Text{Text: "Done."}, translate.Usage{Prompt: 8, Completion: 1}, translate.Finish{Reason: translate.FinishStop})},
	"cancelled": {queued: true, cancel: true, request: `{"input":"Hi","background":true}`, events: events(translate.Round{Number: 1}, translate.Text{Text: "Hel"})},
}

// TestTranscripts compares the stream of each transcript, and its items for the store, with a golden file. The response at the end of the stream is that in one piece, and so is the stored one.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	for name, tr := range transcripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, stream := tr.stream(t)
			gathered := newStream(t, tr.request).Answer
			for _, ev := range tr.events {
				gathered.Add(ev)
			}
			tr.end(&gathered)
			body := gathered.AppendBody(nil)
			if diff := cmp.Diff(string(body), string(s.AppendBody(nil))); diff != "" {
				t.Errorf("(-body +streamed):\n%s", diff)
			}
			if diff := cmp.Diff(string(body), lastResponse(t, stream)); diff != "" {
				t.Errorf("(-body +end of the stream):\n%s", diff)
			}
			stored := AppendStored(nil, Stored{
				ID: testID, Previous: s.Request.Previous, Model: "lmcaddy/tinychat", Created: someTime, Status: gathered.Status(),
				Echo: gathered.Echo(), Out: restored(t, gathered.Items()), Usage: gathered.Usage(),
			})
			if diff := cmp.Diff(string(body), string(stored)); diff != "" {
				t.Errorf("(-body +stored):\n%s", diff)
			}
			if problems := testkit.ResponsesProblems(stream); len(problems) > 0 {
				t.Errorf("the stream: %s", strings.Join(problems, "\n"))
			}
			var items []byte
			for _, item := range gathered.Items() {
				items = append(jsonbody.AppendJSON(items, item), '\n')
			}
			testkit.Golden(t, filepath.Join("testdata", name+".txtar"), txtar.Format(&txtar.Archive{Files: []txtar.File{
				{Name: "stream", Data: stream}, {Name: "items", Data: items},
			}}))
		})
	}
}

// restored returns items as a store gives them back.
func restored(t *testing.T, items []translate.Item) (back []translate.Item) {
	t.Helper()
	stored, err := json.Marshal(items)
	if err == nil {
		err = json.Unmarshal(stored, &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// lastResponse returns the response of the last event.
func lastResponse(t *testing.T, stream []byte) string {
	t.Helper()
	frames := bytes.Split(bytes.TrimSuffix(stream, []byte("\n\ndata: [DONE]\n\n")), []byte("\n\n"))
	_, data, _ := bytes.Cut(frames[len(frames)-1], []byte("\ndata: "))
	var last struct{ Response json.RawMessage }
	if err := json.Unmarshal(data, &last); err != nil {
		t.Fatal(err)
	}
	return string(last.Response)
}
