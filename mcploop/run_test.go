package mcploop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// scripted is an engine whose rounds are given.
type scripted struct {
	rounds  [][]translate.Event
	events  []translate.Event // what a client would see
	asked   []string          // the messages of each round
	offered [][]string        // the names of each round's tools
	before  func() error      // of a round, once its messages are known
	after   func(round int) error
	room    int
}

func (s *scripted) Answer(_ context.Context, round *Round) error {
	messages := request.MessagesOf(round.Conversation)
	s.asked = append(s.asked, string(messages.Array()))
	var names []string
	for _, tool := range round.Tools() {
		names = append(names, tool.Name)
	}
	s.offered = append(s.offered, names)
	if s.before != nil {
		if err := s.before(); err != nil {
			return err
		}
	}
	s.emit(translate.Round{Number: round.Number})
	round.Begin()
	for _, ev := range s.rounds[min(round.Number, len(s.rounds))-1] {
		round.Take(ev, s.emit)
	}
	if s.after != nil {
		return s.after(round.Number)
	}
	return nil
}

func (s *scripted) ResultTokens() int { return max(s.room, 100) }

func (s *scripted) emit(ev translate.Event) { s.events = append(s.events, ev) }

// server is an MCP server in this process.
type server struct {
	tools  []Tool
	err    error
	answer func(ctx context.Context, tool, args string) (Result, error)

	mu    sync.Mutex
	calls []string
}

func (s *server) Tools(context.Context) ([]Tool, error) { return s.tools, s.err }

func (s *server) Call(ctx context.Context, tool string, args json.RawMessage) (Result, error) {
	s.mu.Lock()
	s.calls = append(s.calls, tool+string(args))
	s.mu.Unlock()
	if s.answer == nil {
		return text("done " + tool), nil
	}
	return s.answer(ctx, tool, string(args))
}

func text(s string) Result {
	quoted, _ := json.Marshal(s)
	return Result{Content: json.RawMessage(`[{"type":"text","text":` + string(quoted) + `}]`)}
}

func (s *server) source(label string) Source {
	return Source{
		Server: s, Provider: translate.Provider{Plugin: "mcp/" + label}, Label: label, Param: "integrations[0]",
		Explain: func(err error) *translate.Error {
			return &translate.Error{Kind: translate.KindPluginFailed, Message: err.Error()}
		},
	}
}

func toolbox(t *testing.T, sources ...Source) *Toolbox {
	t.Helper()
	box, err := NewToolbox(t.Context(), sources, request.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

var add = Tool{Name: "add", Description: "Adds.", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`)}

func says(text string) []translate.Item {
	return []translate.Item{{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: []translate.Part{{Text: text}}}}
}

func calls(index int, name, args string) []translate.Event {
	return []translate.Event{
		translate.CallStart{Index: index, ID: fmt.Sprintf("id%d", index), Name: name},
		translate.CallArgs{Index: index, Text: args},
		translate.CallDone{Index: index},
	}
}

var (
	wantsCalls = translate.Finish{Reason: translate.FinishToolCalls}
	isDone     = translate.Finish{Reason: translate.FinishStop}
)

func TestRun_Rounds(t *testing.T) {
	t.Parallel()
	s := &server{tools: []Tool{add}}
	engine := &scripted{rounds: [][]translate.Event{
		append(append([]translate.Event{translate.Reasoning{Text: "Hm."}, translate.Text{Text: "Let me see."}}, calls(0, "add", `{"a":1}`)...), wantsCalls),
		{translate.Text{Text: "It is 1."}, isDone},
	}}
	if err := Run(t.Context(), engine, says("Add."), toolbox(t, s.source("maths")), 5, engine.emit); err != nil {
		t.Fatal(err)
	}
	by := translate.Provider{Plugin: "mcp/maths"}
	want := []translate.Event{
		translate.Round{Number: 1},
		translate.Reasoning{Text: "Hm."},
		translate.Text{Text: "Let me see."},
		translate.CallStart{Index: 0, ID: "id0", Name: "add", Provider: by},
		translate.CallArgs{Index: 0, Text: `{"a":1}`},
		translate.CallDone{Index: 0},
		wantsCalls,
		translate.CallResult{Index: 0, Output: `[{"type":"text","text":"done add"}]`, Given: []translate.Part{{Text: "done add"}}},
		translate.Round{Number: 2},
		translate.Text{Text: "It is 1."},
		isDone,
	}
	if diff := cmp.Diff(want, engine.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	const second = `[{"role":"user","content":"Add."},{"role":"assistant","content":"Let me see.","reasoning_content":"Hm.",` +
		`"tool_calls":[{"id":"id0","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]},{"role":"tool","content":"done add","tool_call_id":"id0"}]`
	if diff := cmp.Diff(second, engine.asked[1]); diff != "" {
		t.Errorf("the second round's messages (-want +got):\n%s", diff)
	}
}

func TestRun_InvalidCallsGoBackToTheModel(t *testing.T) {
	t.Parallel()
	s := &server{tools: []Tool{add}}
	first := append(calls(0, "fly", `{"x":1}`), calls(1, "add", `{"a":"x"}`)...)
	first = append(append(first, calls(2, "add", `nonsense`)...), calls(3, "add", ``)...)
	engine := &scripted{rounds: [][]translate.Event{append(first, wantsCalls), append(calls(0, "add", `{"a":2}`), wantsCalls), {translate.Text{Text: "2"}, isDone}}}
	if err := Run(t.Context(), engine, says("Add."), toolbox(t, s.source("maths")), 5, engine.emit); err != nil {
		t.Fatal(err)
	}
	var invalid []string
	for _, ev := range engine.events {
		if ev, ok := ev.(translate.CallInvalid); ok {
			invalid = append(invalid, fmt.Sprintf("%d %s %t %s", ev.Index, ev.Name, ev.ArgumentsBad, ev.Reason))
		}
	}
	want := []string{
		`0 fly false Cannot find tool with name "fly". The tools are: add.`,
		`1 add true The arguments don't fit the tool's schema: at '/a': got string, want integer`,
		`2 add true The arguments are not a valid JSON object.`,
		`3 add true The arguments don't fit the tool's schema: missing property 'a'`,
	}
	if diff := cmp.Diff(want, invalid); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, reason := range []string{`Cannot find tool`, `got string, want integer`, `not a valid JSON object`, `missing property`} {
		if !strings.Contains(engine.asked[1], reason) {
			t.Errorf("the model isn't told %q: %s", reason, engine.asked[1])
		}
	}
	if diff := cmp.Diff([]string{`add{"a":2}`}, s.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestRun_CallsOfARoundAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup
	both.Add(2)
	s := &server{tools: []Tool{add}, answer: func(context.Context, string, string) (Result, error) {
		both.Done()
		both.Wait()
		return text("ok"), nil
	}}
	engine := &scripted{rounds: [][]translate.Event{append(append(calls(0, "add", `{"a":1}`), calls(1, "add", `{"a":2}`)...), wantsCalls), {isDone}}}
	if err := Run(t.Context(), engine, says("Add."), toolbox(t, s.source("maths")), 5, engine.emit); err != nil {
		t.Fatal(err)
	}
}

func TestRun_Bounds(t *testing.T) {
	t.Parallel()
	more := append(calls(0, "add", `{"a":1}`), wantsCalls)
	cut := append(calls(0, "add", `{"a":1}`), translate.Finish{Reason: translate.FinishLength})
	for name, tt := range map[string]struct {
		round  []translate.Event
		rounds int
		calls  int
	}{
		"rounds": {more, 3, 2},
		"tokens": {cut, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{tools: []Tool{add}}
			engine := &scripted{rounds: [][]translate.Event{tt.round}}
			if err := Run(t.Context(), engine, says("Add."), toolbox(t, s.source("maths")), tt.rounds, engine.emit); err != nil {
				t.Fatal(err)
			}
			if len(engine.asked) != tt.calls+1 || len(s.calls) != tt.calls {
				t.Errorf("%d rounds with %d calls, want %d calls", len(engine.asked), len(s.calls), tt.calls)
			}
			if last := engine.offered[len(engine.offered)-1]; name == "rounds" && len(last) != 0 {
				t.Errorf("the last round has the tools %v", last)
			}
		})
	}
}

// A server that dies in the middle of a call is told, and the chat goes on.
func TestRun_AFailingServer(t *testing.T) {
	t.Parallel()
	s := &server{tools: []Tool{add}, answer: func(context.Context, string, string) (Result, error) {
		return Result{}, errors.New("The server ended.")
	}}
	engine := &scripted{rounds: [][]translate.Event{append(calls(0, "add", `{"a":1}`), wantsCalls), {translate.Text{Text: "Sorry."}, isDone}}}
	if err := Run(t.Context(), engine, says("Add."), toolbox(t, s.source("maths")), 5, engine.emit); err != nil {
		t.Fatal(err)
	}
	want := []translate.Event{
		translate.Trouble{Err: &translate.Error{Kind: translate.KindPluginFailed, Message: "The server ended."}},
		translate.CallResult{Output: `[{"type":"text","text":"The server ended."}]`, Given: []translate.Part{{Text: "The server ended."}}, IsError: true},
		translate.Round{Number: 2},
	}
	if diff := cmp.Diff(want, engine.events[5:8]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRun_Ends(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		after func(cancel func()) func(int) error
		want  error
	}{
		"with the engine's error": {func(func()) func(int) error { return func(int) error { return broken } }, broken},
		"when it is cancelled":    {func(cancel func()) func(int) error { return func(int) error { cancel(); return nil } }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &server{tools: []Tool{add}, answer: func(ctx context.Context, _, _ string) (Result, error) {
				<-ctx.Done()
				return Result{}, ctx.Err()
			}}
			engine := &scripted{rounds: [][]translate.Event{append(calls(0, "add", `{"a":1}`), wantsCalls)}, after: tt.after(cancel)}
			if err := Run(ctx, engine, says("Add."), toolbox(t, s.source("maths")), 5, engine.emit); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if len(engine.asked) != 1 || len(engine.events) != 5 {
				t.Errorf("%d rounds, %v", len(engine.asked), engine.events)
			}
		})
	}
}

// A panic of a tool's client is repeated where the chat is answered, and concerns no other.
func TestRun_Panics(t *testing.T) {
	t.Parallel()
	s := &server{tools: []Tool{add}, answer: func(context.Context, string, string) (Result, error) { panic("oh") }}
	engine := &scripted{rounds: [][]translate.Event{append(calls(0, "add", `{"a":1}`), wantsCalls)}}
	box := toolbox(t, s.source("maths"))
	defer func() {
		if p := recover(); p != "oh" {
			t.Errorf("recovered %v", p)
		}
	}()
	_ = Run(t.Context(), engine, says("Add."), box, 5, engine.emit)
}

func TestRun_WithoutTools(t *testing.T) {
	t.Parallel()
	engine := &scripted{rounds: [][]translate.Event{append(calls(0, "add", `{}`), wantsCalls)}}
	if err := Run(t.Context(), engine, says("Hi"), nil, 5, engine.emit); err != nil || len(engine.asked) != 1 {
		t.Errorf("%v after %d rounds", err, len(engine.asked))
	}
}

// An answer that is begun again counts once.
func TestRound_BeginsAgain(t *testing.T) {
	t.Parallel()
	s := &server{tools: []Tool{add}}
	round := &Round{Number: 1, tools: toolbox(t, s.source("maths"))}
	round.Begin()
	for range 2 {
		round.Begin()
		for _, ev := range append([]translate.Event{translate.Text{Text: "a"}}, calls(0, "add", `{"a":1}`)...) {
			round.Take(ev, func(translate.Event) {})
		}
	}
	if said := round.said(); len(said) != 3 || said[0].Parts[0].Text != "a" {
		t.Errorf("it has said %+v", said)
	}
}

// Space before a call is no message.
func TestRound_Space(t *testing.T) {
	t.Parallel()
	say := func(text string) translate.Event { return translate.Text{Text: text} }
	call := calls(0, "add", `{"a":1}`)
	for name, tt := range map[string]struct {
		events []translate.Event
		want   string
	}{
		"before a call":      {append([]translate.Event{translate.Reasoning{Text: "Hm."}, say("\n"), say(" ")}, call...), "reasoning call"},
		"before a text":      {append([]translate.Event{say("\n"), say("a"), say(" "), say("b")}, call...), `"\na" " " "b" call`},
		"between calls":      {append(append(append([]translate.Event{}, call...), say("\n")), calls(1, "add", `{"a":1}`)...), "call call"},
		"after a text":       {append([]translate.Event{say("a"), say("\n")}, call...), `"a" "\n" call`},
		"all of the answer":  {[]translate.Event{say("\n"), isDone}, `"\n"`},
		"after the last one": {append(append([]translate.Event{}, call...), say("\n"), wantsCalls), "call"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			round := &Round{Number: 1, tools: toolbox(t, (&server{tools: []Tool{add}}).source("maths"))}
			var got []string
			for _, ev := range tt.events {
				round.Take(ev, func(ev translate.Event) {
					switch ev := ev.(type) {
					case translate.Text:
						got = append(got, fmt.Sprintf("%q", ev.Text))
					case translate.Reasoning:
						got = append(got, "reasoning")
					case translate.CallStart:
						got = append(got, "call")
					}
				})
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Results that don't fit the context are cut until they do; what is stored is what the model was given.
func TestRun_ResultsTooLongForTheContext(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		context int // in bytes of messages
		isShort bool
	}{
		"a little": {6000, true},
		"a lot":    {1500, true},
		"never":    {300, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{tools: []Tool{add}, answer: func(context.Context, string, string) (Result, error) { return text(strings.Repeat("7", 10_000)), nil }}
			engine := &scripted{rounds: [][]translate.Event{append(calls(0, "add", `{"a":1}`), wantsCalls), {isDone}}, room: 1 << 20}
			engine.before = func() error {
				if n := len(engine.asked[len(engine.asked)-1]); n > tt.context {
					return translate.Overflow(n, tt.context)
				}
				return nil
			}
			err := Run(t.Context(), engine, says("Go."), toolbox(t, s.source("maths")), 5, engine.emit)
			if (err == nil) != tt.isShort || len(s.calls) != 1 {
				t.Fatal(err, s.calls)
			}
			for _, ev := range engine.events {
				result, ok := ev.(translate.CallResult)
				if ok && tt.isShort && (len(result.Given[0].Text) > tt.context || !strings.Contains(result.Given[0].Text, "bytes were left out.]")) {
					t.Errorf("%d bytes would be stored", len(result.Given[0].Text))
				}
			}
		})
	}
}

// The results of a round share what they may have; the client gets all of them.
func TestRun_ResultsShare(t *testing.T) {
	t.Parallel()
	s := &server{tools: []Tool{add}, answer: func(context.Context, string, string) (Result, error) { return text(strings.Repeat("7", 10_000)), nil }}
	first := append(append(calls(0, "add", `{"a":1}`), calls(1, "add", `{"a":2}`)...), wantsCalls)
	engine := &scripted{rounds: [][]translate.Event{first, {isDone}}, room: 4000}
	if err := Run(t.Context(), engine, says("Go."), toolbox(t, s.source("maths")), 5, engine.emit); err != nil {
		t.Fatal(err)
	}
	given := strings.Repeat("7", 2000) + `\n[The result is cut: 8000 more bytes were left out.]`
	if n := strings.Count(engine.asked[1], `"`+given+`"`); n != 2 {
		t.Errorf("the model gets %d of 2 results as they should be: %s", n, engine.asked[1])
	}
	for _, ev := range engine.events {
		if result, ok := ev.(translate.CallResult); ok && len(result.Output) < 10_000 {
			t.Errorf("the client gets %d bytes", len(result.Output))
		}
	}
}
