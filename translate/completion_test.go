package translate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// TestCompletion_Requests compares the engine's requests, one for each candidate of each prompt, with a golden file.
func TestCompletion_Requests(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, raw := range []string{
		`{"model":"m","prompt":"Hello"}`,
		`{"model":"m","prompt":["Hello","you\n"],"max_tokens":7,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[1,2,3],"stop":"end","temperature":0.70,"unknown":{"a":[1]}}`,
		`{"prompt":[[1,2],[3]],"n":2,"seed":41,"ttl":60}`,
		`{"prompt":"Hello","best_of":3,"n":2,"seed":4294967294}`,
		`{"prompt":"Hello","logprobs":0,"stop":["a","","b"]}`,
		`{"prompt":"Hello","logprobs":5,"echo":false,"seed":-1}`,
		`{"prompt":"fn main() {","suffix":"}\n","max_tokens":-5,"user":"u"}`,
		`{"prompt":"Hello","echo":true,"max_tokens":0,"stop":null,"n":null,"best_of":null,"logprobs":null,"suffix":null,"seed":null}`,
		`{"prompt":"Hello","max_completion_tokens":3,"max_tokens":9,"return_progress":false,"response_fields":["prompt"],"stop":[]}`,
		`{"prompt":"","n_predict":3}`,
		`{"prompt":"Hello","n":2,"seed":0}`,
	} {
		body := testkit.Scan(t, raw)
		c, err := openai.ParseCompletion(body, caps)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		fmt.Fprintf(&all, "%s\n", raw)
		for prompt := range c.Prompts {
			for candidate := range c.BestOf {
				up := llamaserver.Wire{}.Completion(body, c, prompt, candidate)
				if !json.Valid(bytes.Join(up.Body, nil)) {
					t.Errorf("not JSON: %s", bytes.Join(up.Body, nil))
				}
				fmt.Fprintf(&all, "\t%s %s\n", up.Path, bytes.Join(up.Body, nil))
			}
		}
	}
	testkit.Golden(t, filepath.Join("testdata", "completions.golden"), []byte(all.String()))
}

// FuzzRequests: no request makes the parsers panic, and what they take becomes JSON.
func FuzzRequests(f *testing.F) {
	for _, body := range append(bodies, `{"prompt":["a",[1]],"n":2}`, `{"input":["a"],"dimensions":3}`, `{"query":"a","documents":["b",{"text":"c"}]}`,
		`{"prompt":[[1],[2,3]],"best_of":2,"logprobs":1,"stop":["a"],"suffix":"b","seed":-7}`) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		body, bad := jsonbody.Scan(raw)
		if bad != nil {
			return
		}
		var made [][]byte
		if c, err := openai.ParseCompletion(body, caps); err == nil {
			made = append(made, bytes.Join(llamaserver.Wire{}.Completion(body, c, len(c.Prompts)-1, c.BestOf-1).Body, nil))
			wire.AddText(c, 0, prefix.New(0))
		}
		if c, err := openai.ParseChat(body, caps); err == nil {
			wire.AddChat(body, c, prefix.New(0))
		}
		if e, err := openai.ParseEmbedding(body); err == nil {
			made = append(made, bytes.Join(llamaserver.Wire{}.Embeddings(body, e).Body, nil))
		}
		if r, err := openai.RerankJina.Parse(body); err == nil {
			made = append(made, bytes.Join(llamaserver.Wire{}.Rerank(body, r).Body, nil))
		}
		for _, m := range made {
			if !json.Valid(m) {
				t.Fatalf("not JSON: %s", m)
			}
		}
	})
}

// textTranscripts are transcripts of llama-server's text completions.
func textTranscripts(tb testing.TB) []transcript {
	tb.Helper()
	return transcriptsIn(tb, "testdata/llama-text")
}

// decodeText returns the events of a stream that comes in these pieces.
func decodeText(tb testing.TB, pieces ...[]byte) []translate.Event {
	tb.Helper()
	return decodeWith(tb, llamaserver.Wire{}.CompletionDecoder(nil), pieces...)
}

func newTestAnswer() *openai.TextAnswer {
	return openai.NewTextAnswer(openai.Envelope{ID: "cmpl-0", Created: 1700000000, Model: "lmcaddy/tinychat", Fingerprint: "b1"})
}

// streamText returns the stream of a choice with these events.
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

// gatherText returns the body of an answer of v0 with these events, nil if they end in a fault.
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

// TestTextTranscripts compares the views of each transcript with its golden file: the events, the stream and the body, with and
// without log probabilities.
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

// An error returned by emit ends the call and is returned, at any event.
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
			d := llamaserver.Wire{}.CompletionDecoder(nil)
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

// The assembled pieces of a stream are the body.
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
			var whole testkit.Completion
			if err := json.Unmarshal(body, &whole); err != nil {
				t.Fatalf("%s: %v: %s", tr.name, err, body)
			}
			if diff := cmp.Diff(whole, testkit.AssembleCompletion(t, streamText(events, top))); diff != "" {
				t.Errorf("%s, %d log probabilities (-body +stream):\n%s", tr.name, top, diff)
			}
		}
	}
}

// FuzzTextDecoder checks that events follow the grammar and don't depend on the reads, and that answers are JSON.
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
