package translate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// textTranscripts are those of llama-server's own stream of text.
func textTranscripts(tb testing.TB) []transcript {
	tb.Helper()
	return transcriptsIn(tb, "testdata/llama-text")
}

// decodeText is the events of a stream that comes in these pieces.
func decodeText(tb testing.TB, pieces ...[]byte) []translate.Event {
	tb.Helper()
	return decodeWith(tb, llamaserver.Wire{}.CompletionDecoder(), pieces...)
}

func newTestAnswer() *openai.TextAnswer {
	return openai.NewTextAnswer(openai.Envelope{ID: "cmpl-0", Created: 1700000000, Model: "lmcaddy/tinychat", Fingerprint: "b1"})
}

// streamText is what a client sees of a choice whose events these are.
func streamText(events []translate.Event, top int) []byte {
	c := openai.TextChoice{Answer: newTestAnswer(), Top: top, IsStream: true}
	var dst []byte
	for _, ev := range events {
		dst = c.Append(dst, ev)
	}
	if openai.Total([]*openai.TextChoice{&c}, 1).Reason == "" {
		return dst
	}
	total := openai.Total([]*openai.TextChoice{&c}, 1)
	dst = c.AppendFinish(dst, nil)
	dst = c.Answer.AppendUsage(dst, total.Usage, nil)
	return c.Answer.AppendDone(dst)
}

// gatherText is the body of an answer whose only choice has these events; empty if they end in a fault. It is that of a
// client of v0.
func gatherText(events []translate.Event, top int) []byte {
	c := openai.TextChoice{Answer: newTestAnswer(), Top: top}
	for _, ev := range events {
		c.Append(nil, ev)
	}
	if openai.Total([]*openai.TextChoice{&c}, 1).Reason == "" {
		return nil
	}
	choices := []*openai.TextChoice{&c}
	total := openai.Total(choices, 1)
	extras := openai.Extras{Stats: openai.NewStats(total, 256, "")}
	return c.Answer.Body(choices, total.Usage, extras.Members())
}

// TestTextTranscripts keeps what becomes of each transcript: the events, the stream of a client that wants no log
// probabilities and one that does, and the body.
func TestTextTranscripts(t *testing.T) {
	t.Parallel()
	for _, tr := range textTranscripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			events := decodeText(t, tr.upstream)
			wantGrammar(t, events)
			views := []view{
				{"events", []byte(eventLines(t, events))},
				{"stream", streamText(events, -1)},
				{"body", line(gatherText(events, -1))},
			}
			if bytes.Contains(tr.upstream, []byte("completion_probabilities")) {
				views = append(views, view{"stream with log probabilities", streamText(events, 2)}, view{"body with log probabilities", line(gatherText(events, 2))})
			}
			tr.golden(t, views...)
		})
	}
}

func TestTextDecoder_AnyCuttingGivesTheSameEvents(t *testing.T) {
	t.Parallel()
	for _, tr := range textTranscripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			want := decodeText(t, tr.upstream)
			for name, pieces := range cuttings(tr.upstream) {
				got := decodeText(t, pieces...)
				if !reflect.DeepEqual(want, got) { // cmp is slow, and there are thousands of cuts
					t.Fatalf("%s (-whole +cut):\n%s", name, cmp.Diff(want, got))
				}
			}
		})
	}
}

// TestTextDecoder_StopsWhereTheReceiverDoes: an error of emit ends the call and is returned, at whatever event it comes.
func TestTextDecoder_StopsWhereTheReceiverDoes(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for _, tr := range textTranscripts(t) {
		for limit := range decodeText(t, tr.upstream) {
			n := 0
			emit := func(translate.Event) error {
				if n++; n > limit {
					return enough
				}
				return nil
			}
			d := llamaserver.Wire{}.CompletionDecoder()
			err := d.Feed(bytes.Clone(tr.upstream), emit)
			if err == nil {
				err = d.Close(emit)
			}
			if !errors.Is(err, enough) || n != limit+1 {
				t.Fatalf("%s: after %d events: %v, and %d more calls of emit", tr.name, limit, err, n-limit)
			}
		}
	}
}

// TestTextChoice_StreamAndBodySayTheSame: a client that puts the pieces of a stream together has the body.
func TestTextChoice_StreamAndBodySayTheSame(t *testing.T) {
	t.Parallel()
	for _, tr := range textTranscripts(t) {
		for _, top := range []int{-1, 0, 2} {
			events := decodeText(t, tr.upstream)
			body := gatherText(events, top)
			hasLogprobs := bytes.Contains(tr.upstream, []byte("completion_probabilities"))
			if body == nil || (top >= 0 && !hasLogprobs) {
				continue
			}
			var whole textCompletion
			if err := json.Unmarshal(body, &whole); err != nil {
				t.Fatalf("%s: %v: %s", tr.name, err, body)
			}
			if diff := cmp.Diff(whole, assembled(t, streamText(events, top))); diff != "" {
				t.Errorf("%s, %d log probabilities (-body +stream):\n%s", tr.name, top, diff)
			}
		}
	}
}

// textCompletion is a client's view of an answer.
type textCompletion struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index        int
		Text         string
		FinishReason string `json:"finish_reason"`
		Logprobs     *struct {
			Tokens  []string
			Each    []float64            `json:"token_logprobs"`
			Top     []map[string]float64 `json:"top_logprobs"`
			Offsets []int                `json:"text_offset"`
		}
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
}

// assembled puts a stream of one choice together.
func assembled(t *testing.T, stream []byte) textCompletion {
	t.Helper()
	var all textCompletion
	for frame := range strings.SplitSeq(string(stream), "\n\n") {
		data, ok := strings.CutPrefix(frame, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var chunk textCompletion
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		switch {
		case chunk.Usage != nil:
			all.Usage = chunk.Usage
			continue
		case len(all.Choices) == 0:
			all = chunk
			continue
		}
		a, b := &all.Choices[0], &chunk.Choices[0]
		a.Text += b.Text
		a.FinishReason += b.FinishReason
		switch {
		case b.Logprobs == nil:
		case a.Logprobs == nil:
			a.Logprobs = b.Logprobs
		default:
			a.Logprobs.Tokens = append(a.Logprobs.Tokens, b.Logprobs.Tokens...)
			a.Logprobs.Each = append(a.Logprobs.Each, b.Logprobs.Each...)
			a.Logprobs.Top = append(a.Logprobs.Top, b.Logprobs.Top...)
			a.Logprobs.Offsets = append(a.Logprobs.Offsets, b.Logprobs.Offsets...)
		}
	}
	return all
}

// FuzzTextDecoder: the grammar holds, the cutting doesn't matter, and what is made of it is JSON, whatever the engine sends.
func FuzzTextDecoder(f *testing.F) {
	for i, tr := range textTranscripts(f) {
		f.Add(tr.upstream, uint64(i), i%4-1)
	}
	f.Fuzz(func(t *testing.T, upstream []byte, seed uint64, top int) {
		events := decodeText(t, upstream)
		wantGrammar(t, events)
		for _, pieces := range [][][]byte{single(upstream), randomCuts(upstream, seed)} {
			if diff := cmp.Diff(events, decodeText(t, pieces...)); diff != "" {
				t.Fatalf("(-whole +cut):\n%s", diff)
			}
		}
		if body := gatherText(events, top); body != nil && !json.Valid(body) {
			t.Fatalf("the body is not JSON: %s", body)
		}
		for frame := range bytes.SplitSeq(streamText(events, top), []byte("\n\n")) {
			data, _ := bytes.CutPrefix(frame, []byte("data: "))
			if len(data) > 0 && !bytes.Equal(data, jsonbody.DoneMark) && !json.Valid(data) {
				t.Fatalf("a chunk is not JSON: %s", data)
			}
		}
	})
}
