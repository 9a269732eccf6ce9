package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// leavesThoughts is the wire of a model whose thoughts the engine doesn't find, with and without them after results of calls.
func leavesThoughts(afterResults bool) wire.Engine {
	args := func(text string) request.Switch { return request.Switch{Arguments: json.RawMessage(text)} }
	return llamaserver.Wire{}.For(&request.Caps{Template: &request.Template{
		Thinking: map[string]request.Switch{"off": args(`{"thinking":false}`), "on": args(`{"thinking":true}`)}, Default: "off",
		ThoughtEnd: "</think>", ResultsThink: afterResults,
	}})
}

// chatFor parses the request for a chat.
func chatFor(t *testing.T, fields string) *request.Chat {
	t.Helper()
	chat, bad := openai.ParseChat(testkit.Scan(t, fields), request.Caps{})
	if bad != nil {
		t.Fatal(bad)
	}
	return chat
}

// TestLeftThought: the thought is taken out of the text, however it is cut, and calls and stop strings are found after it.
func TestLeftThought(t *testing.T) {
	t.Parallel()
	const call = `data: {"choices":[{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n"
	for name, tt := range map[string]struct {
		text, more string // the engine's text, and fields of the request
		calls      bool   // the answer ends in a call
		want       string
	}{
		"a thought and a text":    {"Hm, so.</think>Yes.", ``, false, `thought "Hm, so."; text "Yes."; finish stop`},
		"white space":             {"\n Hm,\n\nso.\n\n</think>\n\nYes.\n", ``, false, `thought "Hm,\n\nso."; text "Yes.\n"; finish stop`},
		"a thought without end":   {"Hm, so. </thi", ``, false, `thought "Hm, so. </thi"; finish stop`},
		"only a thought":          {"Hm.</think>\n", ``, false, `thought "Hm."; finish stop`},
		"no thought":              {"</think>Yes.", ``, false, `text "Yes."; finish stop`},
		"nothing but white space": {"\n\n", ``, false, `finish stop`},
		"what resembles the mark": {"</b></think</think>a</think>b", ``, false, `thought "</b></think"; text "a</think>b"; finish stop`},
		"a call after it":         {"Hm.</think>\n\n", ``, true, `thought "Hm."; call 0 f; args 0 {}; done 0; finish stop`},
		"a text and a call":       {"Hm.</think>I do.", ``, true, `thought "Hm."; text "I do."; call 0 f; args 0 {}; done 0; finish stop`},
		"a call in a thought":     {"Hm. ", ``, true, `thought "Hm."; call 0 f; args 0 {}; done 0; finish stop`},
		"a stop string after it":  {"An END.</think>It ENDs.", `,"stop":"END"`, false, `thought "An END."; text "It "; finish stop`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fields := `{"messages":[{"role":"user","content":"Hi"}],"chat_template_kwargs":{"enable_thinking":true}` + tt.more + `}`
			engine, chat := leavesThoughts(true), chatFor(t, fields)
			for size := 1; size <= len(tt.text); size += 1 + size/4 {
				var pieces []string
				for rest := tt.text; rest != ""; {
					n := min(size, len(rest))
					pieces, rest = append(pieces, rest[:n]), rest[n:]
				}
				stream := spoken(pieces...)
				if tt.calls {
					end := bytes.Index(stream, []byte(`data: {"choices":[{"finish_reason":"stop"`))
					stream = append(append(append([]byte(nil), stream[:end]...), call...), stream[end:]...)
				}
				events, _ := decodeCut(t, wire.DecoderOf(engine, chat, wire.ChatDecoder(engine, testkit.Scan(t, fields), chat)), stream)
				wantGrammar(t, events)
				if diff := cmp.Diff(tt.want, outline(events)); diff != "" {
					t.Fatalf("in pieces of %d (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

// TestLeftThought_IsCounted as other thoughts are, and isn't held back.
func TestLeftThought_IsCounted(t *testing.T) {
	t.Parallel()
	const fields = `{"messages":[{"role":"user","content":"Hi"}],"reasoning_effort":"high"}`
	d := wire.ChatDecoder(leavesThoughts(true), testkit.Scan(t, fields), chatFor(t, fields))
	stream := spoken("Hm", ", so", ".", "</think>", "Yes", ".")
	begun, rest, _ := bytes.Cut(stream, []byte(`data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"</think>"`))
	var events []translate.Event
	feed := func(p []byte) {
		if err := d.Feed(p, func(ev translate.Event) error {
			events = append(events, ev)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	feed(begun)
	if got := outline(events); got != `thought "Hm, so."` {
		t.Errorf("so far: %s", got)
	}
	feed(stream[len(stream)-len(rest)-len(`data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"</think>"`):])
	usage, _ := d.(wire.Measurer).Figures()
	if usage.Reasoning != 4 || usage.Completion != 8 {
		t.Errorf("the figures are %+v", usage)
	}
	for _, ev := range events {
		if told, ok := ev.(translate.Usage); ok && told != usage {
			t.Errorf("%+v is told, and then %+v", told, usage)
		}
	}
}

// TestLeftThought_Where: only some answers begin with a thought.
func TestLeftThought_Where(t *testing.T) {
	t.Parallel()
	const (
		user   = `{"role":"user","content":"Hi"}`
		called = user + `,{"role":"assistant","content":"","tool_calls":[{"id":"call00001","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call00001","content":"1"}`
		on     = `,"chat_template_kwargs":{"enable_thinking":true}`
	)
	for name, tt := range map[string]struct {
		engine           wire.Engine
		messages, fields string
		want             bool
	}{
		"on":                            {leavesThoughts(false), user, on, true},
		"an effort":                     {leavesThoughts(false), user, `,"reasoning_effort":"low"`, true},
		"on, by the template's own":     {leavesThoughts(false), user, `,"chat_template_kwargs":{"thinking":true}`, true},
		"off":                           {leavesThoughts(false), user, `,"reasoning_effort":"none"`, false},
		"by default":                    {leavesThoughts(false), user, ``, false},
		"an answer that is begun":       {leavesThoughts(false), user + `,{"role":"assistant","content":"Y"}`, on, false},
		"after results":                 {leavesThoughts(true), called, on, true},
		"after results, where none is":  {leavesThoughts(false), called, on, false},
		"in a format":                   {leavesThoughts(false), user, on + `,"response_format":{"type":"json_object"}`, false},
		"with tools":                    {leavesThoughts(false), user, on + `,"tools":[{"type":"function","function":{"name":"f"}}]`, true},
		"a required call":               {leavesThoughts(false), user, on + `,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required"`, false},
		"tools and a format":            {leavesThoughts(false), user, on + `,"tools":[{"type":"function","function":{"name":"f"}}],"response_format":{"type":"json_object"}`, false},
		"thoughts are to be text":       {leavesThoughts(false), user, on + `,"reasoning_format":"none"`, false},
		"an engine that finds thoughts": {llamaserver.Wire{}.For(&request.Caps{Template: &request.Template{}}), user, on, false},
		"an unknown model":              {llamaserver.Wire{}, user, on, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fields := `{"messages":[` + tt.messages + `]` + tt.fields + `}`
			end := wire.ThoughtEnd(tt.engine, testkit.Scan(t, fields), chatFor(t, fields))
			if want := map[bool]string{true: "</think>"}[tt.want]; end != want {
				t.Errorf("the thought ends with %q, want %q", end, want)
			}
			said := &wire.Said{Reasoning: "Hm", Usage: translate.Usage{Completion: 1}}
			_, goesOn := tt.engine.(wire.Continuer).Continue(testkit.Scan(t, fields), chatFor(t, fields), 0, said)
			if goesOn && tt.want {
				t.Error("the thought would be continued in a request")
			}
		})
	}
}

// TestLlamaServer_Dictates by a grammar.
func TestLlamaServer_Dictates(t *testing.T) {
	t.Parallel()
	u := llamaserver.Wire{}.Dictate(json.RawMessage(`[{"role":"user","content":"Hi"}]`), json.RawMessage(`{"thinking":true}`), "a</think>b")
	var sent struct {
		Messages  json.RawMessage `json:"messages"`
		Arguments json.RawMessage `json:"chat_template_kwargs"`
		Grammar   string          `json:"grammar"`
	}
	if err := json.Unmarshal(bytes.Join(u.Body, nil), &sent); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s %s %s", sent.Messages, sent.Arguments, sent.Grammar); got != `[{"role":"user","content":"Hi"}] {"thinking":true} root ::= "a</think>b"` {
		t.Errorf("it is sent %s", got)
	}
	for answer, want := range map[string]string{
		`{"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":"a</think>b"}}]}`:                "a</think>b",
		`{"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":"b","reasoning_content":"a"}}]}`: "b",
		"garbage": "",
	} {
		if got := (llamaserver.Wire{}).Dictated(200, []byte(answer)); got != want {
			t.Errorf("%s is %q", answer, got)
		}
	}
	if got := (llamaserver.Wire{}).Dictated(400, []byte(strings.Repeat(" ", 8))); got != "" {
		t.Errorf("a refusal is %q", got)
	}
}
