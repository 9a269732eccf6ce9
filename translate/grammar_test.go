package translate_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
)

// grammar follows what the documentation of [Event] promises of a decoder's events.
type grammar struct {
	section int
	calls   int
	open    bool
}

// The sections of an answer, in the order in which they come.
const (
	inPrompt = iota
	inAnswer
	afterUsage
	afterTimings
	afterStop
	atEnd
)

// check returns what breaks the grammar.
func (g *grammar) check(ev translate.Event) error {
	from := g.section
	switch ev := ev.(type) {
	case translate.Prompt:
		g.section = inPrompt
	case translate.Reasoning, translate.Text, translate.Logprobs:
		g.section = inAnswer
	case translate.CallStart:
		g.section = inAnswer
		if g.open || ev.Index != g.calls {
			return fmt.Errorf("call %d begins, but %d calls have begun (open: %t)", ev.Index, g.calls, g.open)
		}
		g.calls, g.open = g.calls+1, true
	case translate.CallArgs:
		g.section = inAnswer
		return g.isOpen(ev.Index)
	case translate.CallDone:
		g.section = inAnswer
		err := g.isOpen(ev.Index)
		g.open = false
		return err
	case translate.Usage:
		g.section = afterUsage
	case translate.Timings:
		g.section = afterTimings
	case translate.Stop:
		g.section = afterStop
	case translate.Finish:
		g.section = atEnd
		if g.open {
			return fmt.Errorf("finish, but call %d is open", g.calls-1)
		}
	case translate.Fault:
		g.section = atEnd
	default:
		return fmt.Errorf("a decoder emits no %T", ev)
	}
	repeats := g.section == inPrompt || g.section == inAnswer
	if g.section < from || (g.section == from && !repeats) {
		return fmt.Errorf("%T after section %d", ev, from)
	}
	return nil
}

func (g *grammar) isOpen(index int) error {
	if !g.open || index != g.calls-1 {
		return fmt.Errorf("call %d isn't open: %d calls have begun", index, g.calls)
	}
	return nil
}

// wantGrammar checks a decoder's events from the first to the last.
func wantGrammar(t *testing.T, events []translate.Event) {
	t.Helper()
	var g grammar
	for i, ev := range events {
		if err := g.check(ev); err != nil {
			t.Fatalf("event %d: %v; the events are\n%s", i, err, eventLines(t, events))
		}
	}
	if g.section != atEnd {
		t.Fatalf("the events have no end:\n%s", eventLines(t, events))
	}
}

func TestDecoder_KeepsTheGrammar(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			wantGrammar(t, decode(t, tr.upstream))
		})
	}
}

// anyChunks are all sorts of what an engine may send, sensible or not.
var anyChunks = []string{
	`: comment`,
	`data: {"choices":[{"delta":{"role":"assistant","content":null}}],"prompt_progress":{"total":9,"cache":3,"processed":3}}`,
	`data: {"choices":[{"delta":{"role":"assistant","content":null}}]}`,
	`data: {"choices":[{"delta":{"reasoning_content":"Hm"}}]}`,
	`data: {"choices":[{"delta":{"content":"Hello"}}]}`,
	`data: {"choices":[{"delta":{"content":"Hello"}}],"timings":{"prompt_ms":1}}`,
	`data: {"choices":[{"delta":{"content":"H"},"logprobs":{"content":[{"token":"H"}]}}]}`,
	`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{"}}]}}]}`,
	`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}`,
	`data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"two"}}]}}]}`,
	`data: {"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}}]}`,
	`data: {"choices":[{"delta":{"tool_calls":[{"index":-1,"id":"c","function":{"name":"three","arguments":"{}"}}]}}]}`,
	`data: {"choices":[{"delta":{"tool_calls":[{"index":1000000000000,"id":"d","function":{"name":"four","arguments":"{}"}}]}}]}`,
	`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"prompt_ms":1}}`,
	`data: {"choices":[],"usage":{"prompt_tokens":9},"timings":{"prompt_ms":1}}`,
	`data: {"choices":7,"usage":"many","timings":[1]}`,
	`data: {"error":{"code":500,"message":"broken"}}`,
	`data: {"error":null}`,
	`data: nonsense`,
	`data: [DONE]`,
}

func TestDecoder_AnyOrderOfChunksKeepsTheGrammar(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var upstream bytes.Buffer
		for range r.IntN(12) {
			// the last four end the stream, and are to be rare
			i := min(r.IntN(len(anyChunks)), r.IntN(2*len(anyChunks)))
			fmt.Fprintf(&upstream, "%s\n\n", anyChunks[i])
		}
		events := decode(t, upstream.Bytes())
		wantGrammar(t, events)
		if diff := cmp.Diff(events, decode(t, randomCuts(upstream.Bytes(), seed)...)); diff != "" {
			t.Fatalf("seed %d (-whole +cut):\n%s", seed, diff)
		}
	}
}

// TestGrammar_SeesWhatBreaksIt is the test of the test.
func TestGrammar_SeesWhatBreaksIt(t *testing.T) {
	t.Parallel()
	end := translate.Finish{Reason: translate.FinishStop}
	for name, events := range map[string][]translate.Event{
		"progress after text":     {translate.Text{Text: "a"}, translate.Prompt{}},
		"text after usage":        {translate.Usage{}, translate.Text{Text: "a"}},
		"usage twice":             {translate.Usage{}, translate.Usage{}},
		"timings twice":           {translate.Timings{}, translate.Timings{}},
		"usage after timings":     {translate.Timings{}, translate.Usage{}},
		"arguments of no call":    {translate.CallArgs{Index: 0}},
		"end of no call":          {translate.CallDone{}},
		"a call left out":         {translate.CallStart{Index: 1}},
		"a call in another":       {translate.CallStart{}, translate.CallStart{Index: 1}},
		"arguments behind a call": {translate.CallStart{}, translate.CallDone{}, translate.CallArgs{}},
		"finish in a call":        {translate.CallStart{}, end},
		"two ends":                {end, translate.Fault{Err: translate.Nonsense()}},
		"text after the end":      {end, translate.Text{Text: "a"}},
		"an event of the loop's":  {translate.Round{Number: 1}},
	} {
		var g grammar
		var err error
		for _, ev := range events {
			if err = g.check(ev); err != nil {
				break
			}
		}
		if err == nil {
			t.Errorf("%s goes unseen", name)
		}
	}
}
