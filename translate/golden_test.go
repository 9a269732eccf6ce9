package translate_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// transcript is a golden file: an engine's answer to one request, and its views.
type transcript struct {
	name     string
	upstream []byte
	path     string
	comment  []byte
	views    map[string][]byte // as the file has them
}

// view is what clients receive for a transcript, or its events. An empty view has no section in the file.
type view struct {
	name string
	data []byte
}

// transcripts are llama-server's: recorded ones, and ones made up for what can't be recorded on demand.
func transcripts(tb testing.TB) []transcript {
	tb.Helper()
	return transcriptsIn(tb, "testdata/llama")
}

func transcriptsIn(tb testing.TB, dir string) []transcript {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no transcripts: %v", err)
	}
	var all []transcript
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		tr := transcript{name: strings.TrimSuffix(filepath.Base(path), ".txtar"), path: path, comment: archive.Comment, views: map[string][]byte{}}
		for _, section := range archive.Files {
			name, isCut := strings.CutSuffix(section.Name, withoutNewline)
			if isCut {
				section.Data = bytes.TrimSuffix(section.Data, []byte("\n"))
			}
			tr.views[name] = section.Data
		}
		tr.upstream = tr.views["upstream"]
		all = append(all, tr)
	}
	return all
}

// withoutNewline marks a section whose data doesn't end in a newline, since those of an archive always do.
const withoutNewline = " (without the last newline)"

// golden compares the views with those in the transcript's file.
func (tr *transcript) golden(t *testing.T, views ...view) {
	t.Helper()
	archive := &txtar.Archive{Comment: tr.comment}
	for _, v := range append([]view{{"upstream", tr.upstream}}, views...) {
		if len(v.data) == 0 && v.name != "upstream" {
			continue
		}
		if len(v.data) > 0 && !bytes.HasSuffix(v.data, []byte("\n")) {
			v.name += withoutNewline
		}
		archive.Files = append(archive.Files, txtar.File{Name: v.name, Data: v.data})
	}
	testkit.Golden(t, tr.path, txtar.Format(archive))
}

// decode returns the events of a stream that comes in these pieces. Each piece is overwritten after Feed, as a reader overwrites
// its buffer.
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

// envelope is the envelope of the tests' answers.
var envelope = openai.Envelope{ID: "chatcmpl-0", Created: 1700000000, Model: "lmcaddy/tinychat", Fingerprint: "b1"}

// caps are those of an unknown model on llama-server.
var caps = func() (c request.Caps) {
	llamaserver.Wire{}.Describe(&c)
	return c
}()

// capsOf adds those of llama-server.
func capsOf(c request.Caps) request.Caps {
	llamaserver.Wire{}.Describe(&c)
	return c
}

// rewriteOptions are the options of the client's stream.
type rewriteOptions struct {
	IncludeUsage   bool
	ReasoningField openai.ReasoningField
	Envelope       openai.Envelope
	Extra          openai.Extra
	SinceArrival   func() time.Duration
	Choice         int
	Tail           *openai.ChatTail
}

// newRewriter returns the rewriter that package api uses for a chat.
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
	return wire.Encoded(wire.DecoderOf(llamaserver.Wire{}, chat, llamaserver.Wire{}.Decoder()), openai.NewChatStream(chunks, chat.SingleCall))
}

// rewrite returns the client's stream for an engine's stream in these pieces, and its error.
func rewrite(opts rewriteOptions, pieces ...[]byte) ([]byte, *translate.Error) {
	return rewriteFor(&request.Chat{}, opts, pieces...)
}

// rewriteFor is like rewrite for a given chat.
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

// gather returns the body of a chat with these events.
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

// eventLines describes each event in a line.
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
