package native

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

func TestParseIntegrations(t *testing.T) {
	t.Parallel()
	const server = `"type":"ephemeral_mcp","server_label":"l","server_url":"https://h/mcp"`
	for name, tt := range map[string]struct {
		field string
		want  []request.MCPServer
	}{
		"none":       {`[]`, nil},
		"null":       {`null`, nil},
		"a plugin":   {`["mcp/my_files"]`, []request.MCPServer{{Param: "integrations[0]", Plugin: "my_files"}}},
		"an object":  {`[{"type":"plugin","id":"mcp/files"}]`, []request.MCPServer{{Param: "integrations[0]", Plugin: "files"}}},
		"restricted": {`[{"type":"plugin","id":"mcp/files","allowed_tools":["a","b"]}]`, []request.MCPServer{{Param: "integrations[0]", Plugin: "files", Restricted: true, Allowed: []string{"a", "b"}}}},
		"to nothing": {`[{"type":"plugin","id":"mcp/files","allowed_tools":[]}]`, []request.MCPServer{{Param: "integrations[0]", Plugin: "files", Restricted: true}}},
		"a server":   {`[{` + server + `}]`, []request.MCPServer{{Param: "integrations[0]", Label: "l", URL: "https://h/mcp"}}},
		"its nulls":  {`[{` + server + `,"headers":null,"allowed_tools":null,"x":null}]`, []request.MCPServer{{Param: "integrations[0]", Label: "l", URL: "https://h/mcp"}}},
		"two": {`["mcp/a",{` + server + `,"headers":{"Authorization":"Bearer t"}}]`, []request.MCPServer{
			{Param: "integrations[0]", Plugin: "a"}, {Param: "integrations[1]", Label: "l", URL: "https://h/mcp", Headers: map[string]string{"Authorization": "Bearer t"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseChat(testkit.Scan(t, `{"model":"m","input":"hi","integrations":`+tt.field+`}`), "m", request.Caps{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Integrations, cmpopts.IgnoreFields(request.MCPServer{}, "Provider")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseIntegrations_RefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	const server = `"type":"ephemeral_mcp","server_label":"l","server_url":"https://h/mcp"`
	for name, tt := range map[string]struct{ field, kind, param string }{
		"a string":         {`"mcp/a"`, "invalid_request", "integrations"},
		"a number":         {`[1]`, "invalid_request", "integrations[0]"},
		"a null":           {`[null]`, "invalid_request", "integrations[0]"},
		"an empty string":  {`[""]`, "plugin_connection_error", "integrations[0]"},
		"no id":            {`["files"]`, "plugin_connection_error", "integrations[0]"},
		"half an id":       {`["mcp/"]`, "plugin_connection_error", "integrations[0]"},
		"no type":          {`[{"id":"mcp/a"}]`, "invalid_request", "integrations[0].type"},
		"an unknown type":  {`[{"type":"x"}]`, "invalid_request", "integrations[0].type"},
		"no plugin":        {`[{"type":"plugin"}]`, "invalid_request", "integrations[0].id"},
		"a null plugin":    {`[{"type":"plugin","id":null}]`, "invalid_request", "integrations[0].id"},
		"no label":         {`[{"type":"ephemeral_mcp","server_url":"https://h"}]`, "invalid_request", "integrations[0].server_label"},
		"an empty label":   {`[{"type":"ephemeral_mcp","server_label":"","server_url":"https://h"}]`, "invalid_request", "integrations[0].server_label"},
		"an endless label": {`[{"type":"ephemeral_mcp","server_label":"` + strings.Repeat("x", 2000) + `","server_url":"https://h"}]`, "invalid_request", "integrations[0].server_label"},
		"no URL":           {`[{"type":"ephemeral_mcp","server_label":"l"}]`, "invalid_request", "integrations[0].server_url"},
		"headers":          {`[{` + server + `,"headers":["a"]}]`, "invalid_request", "integrations[0].headers"},
		"a header":         {`[{` + server + `,"headers":{"a":1}}]`, "invalid_request", "integrations[0].headers.a"},
		"allowed tools":    {`[{` + server + `,"allowed_tools":"a"}]`, "invalid_request", "integrations[0].allowed_tools"},
		"an allowed tool":  {`[{` + server + `,"allowed_tools":["a",null]}]`, "invalid_request", "integrations[0].allowed_tools[1]"},
		"one twice":        {`["mcp/a",{"type":"plugin","id":"mcp/a"}]`, "invalid_request", "integrations[1]"},
		"too many":         {`["mcp/a"` + strings.Repeat(`,"mcp/b"`, 64) + `]`, "invalid_request", "integrations"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseChat(testkit.Scan(t, `{"model":"m","input":"hi","integrations":`+tt.field+`}`), "m", request.Caps{})
			if err == nil {
				t.Fatal("it is accepted")
			}
			if got := errorObjectOf(err); err.Status() != 400 || got.Type != tt.kind || err.Param != tt.param || err.Message == "" {
				t.Errorf("%+v, want %s about %s", got, tt.kind, tt.param)
			}
		})
	}
}

// TestAnswer_ARoundAgain: a round that is begun again counts once, and leaves the rounds before it alone.
func TestAnswer_ARoundAgain(t *testing.T) {
	t.Parallel()
	call := []translate.Event{
		translate.CallStart{Index: 0, ID: "a", Name: "read", Provider: translate.Provider{Plugin: "p"}},
		translate.CallArgs{Index: 0, Text: "{}"},
		translate.CallDone{Index: 0},
		translate.Usage{Prompt: 5, Completion: 3, Reasoning: 1},
		translate.Timings{PromptMillis: 5, PredictedMillis: 100, PredictedPerSecond: 30},
		translate.Finish{Reason: translate.FinishToolCalls},
		translate.CallResult{Index: 0, Output: "[]"},
	}
	broken := []translate.Event{translate.Prompt{Total: 9}, translate.Text{Text: "Lost"}, translate.Fault{Err: translate.BrokenOff()}}
	last := []translate.Event{
		translate.Text{Text: "Done."},
		translate.Usage{Prompt: 9, Completion: 2},
		translate.Timings{PromptMillis: 7, PredictedMillis: 100, PredictedPerSecond: 20},
		translate.Finish{Reason: translate.FinishStop},
	}
	a := Answer{Instance: "m"}
	for _, events := range [][]translate.Event{
		{translate.Round{Number: 1}},
		call[:3],
		{translate.Round{Number: 1}},
		call,
		{translate.Round{Number: 2}},
		broken,
		{translate.Round{Number: 2}},
		last,
	} {
		for _, ev := range events {
			a.Add(ev)
		}
	}
	if diff := cmp.Diff(translate.Usage{Prompt: 9, Completion: 5, Reasoning: 1}, a.Usage()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := `{"model_instance_id":"m","output":[{"type":"tool_call","tool":"read","arguments":{},"output":"[]","provider_info":{"type":"plugin","plugin_id":"p"}},` +
		`{"type":"message","content":"Done."}],"stats":{"input_tokens":9,"total_output_tokens":5,"reasoning_output_tokens":1,"tokens_per_second":25,"time_to_first_token_seconds":0.005}}`
	if diff := cmp.Diff(want, string(a.AppendBody(nil))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
