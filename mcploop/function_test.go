package mcploop

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// A call of the client's function ends the loop; those of servers' tools in the same round are still made.
func TestRun_Functions(t *testing.T) {
	t.Parallel()
	function := request.Tool{Name: "ask", Definition: "{}"}
	for name, tt := range map[string]struct {
		sources  []Source
		first    []translate.Event
		provided []string // of each call that is told
		made     int
		rounds   int
	}{
		"alone":                   {nil, calls(0, "ask", `{"x":1}`), []string{"ask:"}, 0, 1},
		"of an unknown name":      {nil, calls(0, "other", `nonsense`), []string{"other:"}, 0, 1},
		"beside a server's":       {[]Source{(&server{tools: []Tool{add}}).source("maths")}, append(calls(0, "add", `{"a":1}`), calls(1, "ask", `{}`)...), []string{"add:mcp/maths", "ask:"}, 1, 1},
		"only the server's":       {[]Source{(&server{tools: []Tool{add}}).source("maths")}, calls(0, "add", `{"a":1}`), []string{"add:mcp/maths"}, 1, 2},
		"unknown where both are":  {[]Source{(&server{tools: []Tool{add}}).source("maths")}, calls(0, "other", `{}`), nil, 0, 2},
		"without any arguments":   {nil, calls(0, "ask", ``), []string{"ask:"}, 0, 1},
		"a server's of that name": {[]Source{(&server{tools: named("ask")}).source("maths")}, append(calls(0, "maths_ask", `{}`), calls(1, "ask", `{}`)...), []string{"ask:mcp/maths", "ask:"}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := toolbox(t, tt.sources...)
			box.AddFunctions([]request.Tool{function})
			engine := &scripted{rounds: [][]translate.Event{append(tt.first, wantsCalls), {translate.Text{Text: "Done."}, isDone}}}
			if err := Run(t.Context(), engine, says("Go."), box, 5, engine.emit); err != nil {
				t.Fatal(err)
			}
			var provided []string
			made := 0
			for _, ev := range engine.events {
				switch ev := ev.(type) {
				case translate.CallStart:
					provided = append(provided, ev.Name+":"+ev.Provider.Plugin)
				case translate.CallResult:
					made++
				}
			}
			if diff := cmp.Diff(tt.provided, provided); diff != "" || made != tt.made || len(engine.asked) != tt.rounds {
				t.Errorf("%d calls were made in %d rounds\n%s", made, len(engine.asked), diff)
			}
		})
	}
}

func TestRun_MaxCalls(t *testing.T) {
	t.Parallel()
	s := &server{tools: []Tool{add}}
	box := toolbox(t, s.source("maths"))
	box.MaxCalls = 3
	two := append(append(calls(0, "add", `{"a":1}`), calls(1, "add", `{"a":2}`)...), wantsCalls)
	engine := &scripted{rounds: [][]translate.Event{two, two, {translate.Text{Text: "Done."}, isDone}}}
	if err := Run(t.Context(), engine, says("Go."), box, 5, engine.emit); err != nil {
		t.Fatal(err)
	}
	if len(s.calls) != 3 || !strings.Contains(engine.asked[2], "the limit of 3 calls is reached") {
		t.Errorf("%d calls; the last round has %s", len(s.calls), engine.asked[2])
	}
}

func TestToolbox_Lists(t *testing.T) {
	t.Parallel()
	maths, empty := &server{tools: []Tool{add, {Name: "sub"}}}, &server{}
	box := toolbox(t, maths.source("maths"), empty.source("empty"))
	box.AddFunctions([]request.Tool{{Name: "add", Definition: "{}"}})
	want := []translate.ToolList{
		{Server: "maths", Tools: json.RawMessage(`[{"name":"add","input_schema":` + string(add.Schema) + `,"description":"Adds."},{"name":"sub","input_schema":{"type":"object","properties":{}}}]`)},
		{Server: "empty", Tools: json.RawMessage(`[]`)},
	}
	if diff := cmp.Diff(want, box.Lists()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if names := box.names(); !slices.Contains(names, "maths_add") || !slices.Contains(names, "add") {
		t.Errorf("the model knows %v", names)
	}
	for _, tool := range box.tools {
		if tool.Name == "maths_add" && (tool.Server != "maths" || tool.Bare != "add") {
			t.Errorf("the renamed tool is %q of the server %q", tool.Bare, tool.Server) // a tool_choice could not name it
		}
	}
}

// Of the calls that a model makes at a time, only the first is taken if the client wants one at a time: a later one of the client's
// functions doesn't end the loop.
func TestRun_Single(t *testing.T) {
	t.Parallel()
	s := &server{tools: []Tool{add}}
	box := toolbox(t, s.source("maths"))
	box.AddFunctions([]request.Tool{{Name: "ask", Definition: "{}"}})
	box.Single = true
	three := slices.Concat(calls(0, "add", `{"a":1}`), calls(1, "add", `{"a":2}`), calls(2, "ask", `{}`), []translate.Event{wantsCalls})
	engine := &scripted{rounds: [][]translate.Event{three, {translate.Text{Text: "Done."}, isDone}}}
	if err := Run(t.Context(), engine, says("Go."), box, 5, engine.emit); err != nil {
		t.Fatal(err)
	}
	if len(s.calls) != 1 || len(engine.asked) != 2 || strings.Contains(engine.asked[1], "id1") || strings.Contains(engine.asked[1], "ask") {
		t.Errorf("%d calls; the model was asked %q", len(s.calls), engine.asked)
	}
}

// A model that calls on when it gets no tools any more makes no calls, which would look like those of the client's functions.
func TestRun_CallsWithoutTools(t *testing.T) {
	t.Parallel()
	s := &server{tools: []Tool{add}}
	engine := &scripted{rounds: [][]translate.Event{append(calls(0, "add", `{"a":1}`), wantsCalls)}}
	if err := Run(t.Context(), engine, says("Go."), toolbox(t, s.source("maths")), 3, engine.emit); err != nil {
		t.Fatal(err)
	}
	for _, ev := range engine.events {
		if start, ok := ev.(translate.CallStart); ok && start.Provider.Plugin == "" {
			t.Errorf("a client is told of %+v", start)
		}
	}
	if len(s.calls) != 2 || len(engine.asked) != 3 {
		t.Errorf("%d calls in %d rounds", len(s.calls), len(engine.asked))
	}
}
