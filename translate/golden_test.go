package translate_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a golden file. Nothing at all is the same as no file.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		writeGolden(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got); -update accepts it:\n%s", path, diff)
	}
}

func writeGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	var err error
	if len(got) > 0 {
		err = os.WriteFile(path, got, 0o644)
	} else if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		t.Fatal(err)
	}
}

// transcript is what an engine answered to one request.
type transcript struct {
	name     string
	upstream []byte
}

// transcripts are those of llama-server: recorded ones, and ones made up for what can't be had on command.
func transcripts(tb testing.TB) []transcript {
	tb.Helper()
	return transcriptsIn(tb, "testdata/llama")
}

func transcriptsIn(tb testing.TB, dir string) []transcript {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.upstream"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no transcripts: %v", err)
	}
	var all []transcript
	for _, path := range paths {
		upstream, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, transcript{strings.TrimSuffix(filepath.Base(path), ".upstream"), upstream})
	}
	return all
}

// decode is the events of a stream that comes in these pieces. Each piece is overwritten once it was fed, as a reader
// does with its buffer.
func decode(tb testing.TB, pieces ...[]byte) []translate.Event {
	tb.Helper()
	return decodeWith(tb, llamaserver.Wire{}.Decoder(), pieces...)
}

func decodeWith(tb testing.TB, d translate.Decoder, pieces ...[]byte) []translate.Event {
	tb.Helper()
	var events []translate.Event
	emit := func(ev translate.Event) error {
		events = append(events, ev)
		return nil
	}
	for _, p := range pieces {
		buf := append([]byte(nil), p...)
		if err := d.Feed(buf, emit); err != nil {
			tb.Fatal(err)
		}
		scribble(buf)
	}
	if err := d.Close(emit); err != nil {
		tb.Fatal(err)
	}
	return events
}

// envelope is what the tests' answers say of themselves.
var envelope = openai.Envelope{ID: "chatcmpl-0", Created: 1700000000, Model: "lmcaddy/tinychat", Fingerprint: "b1"}

// caps is a model of which nothing is known, on llama-server.
var caps = func() (c request.Caps) {
	llamaserver.Wire{}.Describe(&c)
	return c
}()

// capsOf adds what llama-server takes.
func capsOf(c request.Caps) request.Caps {
	llamaserver.Wire{}.Describe(&c)
	return c
}

// rewriteOptions is what the client's stream is written with.
type rewriteOptions struct {
	IncludeUsage   bool
	ReasoningField openai.ReasoningField
	Envelope       openai.Envelope
	Extra          openai.Extra
	SinceArrival   func() time.Duration
	Choice         int
	Tail           *openai.ChatTail
}

// newRewriter makes the client's stream of a chat as the API does.
func newRewriter(chat *request.Chat, opts rewriteOptions) wire.Rewriter {
	if opts.Tail == nil {
		opts.Tail = openai.NewChatTail(1, opts.IncludeUsage, opts.Extra)
	}
	chunks := openai.NewChatChunks(openai.ChunkOptions{
		Envelope: opts.Envelope, Reasoning: opts.ReasoningField, OnlyChosen: chat.OnlyChosen,
		SinceArrival: opts.SinceArrival, Choice: opts.Choice, Tail: opts.Tail,
	})
	if !chat.Forced && len(chat.Stops) == 0 {
		return llamaserver.Wire{}.Rewriter(chat, chunks)
	}
	return wire.Encoded(wire.Decoder(llamaserver.Wire{}, chat), openai.NewChatStream(chunks, chat.SingleCall))
}

// rewrite is what a client sees of a stream that comes in these pieces, and how it went.
func rewrite(opts rewriteOptions, pieces ...[]byte) ([]byte, *translate.Error) {
	return rewriteFor(&request.Chat{}, opts, pieces...)
}

// rewriteFor is rewrite for what a chat request asks for.
func rewriteFor(chat *request.Chat, opts rewriteOptions, pieces ...[]byte) ([]byte, *translate.Error) {
	var dst []byte
	opts.Envelope = envelope
	r := newRewriter(chat, opts)
	for _, p := range pieces {
		buf := append([]byte(nil), p...)
		dst = r.Append(dst, buf)
		scribble(buf)
	}
	dst = r.Close(dst)
	if fault := r.Fault(); fault != nil {
		dst = jsonbody.AppendFrame(dst, openai.Errors{}.AppendError(nil, fault, "")) // as the caller does
	}
	return dst, r.Fault()
}

func scribble(p []byte) {
	for i := range p {
		p[i] = '#'
	}
}

// gather is the body that is made of events.
func gather(field openai.ReasoningField, events []translate.Event) []byte {
	return gatherInto(&openai.ChatBody{Envelope: envelope, Reasoning: field}, events)
}

// gatherInto is the body that b makes of the events of one choice; nil if they don't come to their end.
func gatherInto(b *openai.ChatBody, events []translate.Event) []byte {
	var choice openai.ChatChoice
	for _, ev := range events {
		choice.Add(ev)
		if _, ok := ev.(translate.Finish); ok {
			return b.AppendBody(nil, []*openai.ChatChoice{&choice})
		}
	}
	return nil
}

// eventLines says each event on a line.
func eventLines(tb testing.TB, events []translate.Event) string {
	tb.Helper()
	var all strings.Builder
	for _, ev := range events {
		fmt.Fprintln(&all, eventLine(tb, ev))
	}
	return all.String()
}

func eventLine(tb testing.TB, ev translate.Event) string {
	tb.Helper()
	switch ev := ev.(type) {
	case translate.Prompt:
		return fmt.Sprintf("prompt: %d of %d, %d cached", ev.Processed, ev.Total, ev.Cached)
	case translate.Reasoning:
		return "reasoning: " + quoted(tb, ev.Text)
	case translate.Text:
		return "text: " + quoted(tb, ev.Text)
	case translate.CallStart:
		return fmt.Sprintf("call %d: %s, id %s", ev.Index, ev.Name, ev.ID)
	case translate.CallArgs:
		return fmt.Sprintf("call %d: arguments %s", ev.Index, quoted(tb, ev.Text))
	case translate.CallDone:
		return fmt.Sprintf("call %d: done", ev.Index)
	case translate.Logprobs:
		return "logprobs: " + string(ev.Content)
	case translate.Usage:
		return fmt.Sprintf("usage: prompt %d, cached %d, completion %d, reasoning %d", ev.Prompt, ev.Cached, ev.Completion, ev.Reasoning)
	case translate.Timings:
		return fmt.Sprintf("timings: prompt %v ms, predicted %v ms, %v a second, draft %d, accepted %d",
			ev.PromptMillis, ev.PredictedMillis, ev.PredictedPerSecond, ev.DraftTokens, ev.DraftAccepted)
	case translate.Stop:
		return strings.TrimSpace(fmt.Sprintf("stop: %s %s", ev.Reason, ev.Text))
	case translate.Finish:
		return "finish: " + string(ev.Reason)
	case translate.Fault:
		return fmt.Sprintf("fault: %d %s", ev.Err.Status(), ev.Err.Message)
	default:
		tb.Fatalf("a decoder emitted %T", ev)
		return ""
	}
}

func quoted(tb testing.TB, s string) string {
	tb.Helper()
	q, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	return string(q)
}
