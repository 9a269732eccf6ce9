package translate_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// withFigures stands for what v0 adds to an answer.
func withFigures(o *translate.Outcome) []byte {
	figures := jsonbody.AppendJSON(nil, map[string]any{"stop_reason": o.StopReason(2048), "tokens": o.Usage.Completion, "drafted": o.Timings.DraftTokens})
	return figures[1 : len(figures)-1]
}

// TestTranscripts_Extra keeps what an answer with figures looks like, in a stream and in one piece.
func TestTranscripts_Extra(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"verbose", "speculative", "length-in-text", "tool-call", "broken-off"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(transcripts(t), func(tr transcript) bool { return tr.name == name })
			upstream := transcripts(t)[i].upstream
			base := filepath.Join("testdata", "llama", name)
			stream, _ := rewrite(rewriteOptions{Extra: withFigures}, upstream)
			golden(t, base+".extra.stream", stream)
			full, _ := rewrite(rewriteOptions{Extra: withFigures, IncludeUsage: true}, upstream)
			golden(t, base+".extra.full.stream", full)
			body := gatherInto(&openai.ChatBody{Envelope: envelope, Extra: withFigures}, decode(t, upstream))
			golden(t, base+".extra.body.json", line(body))
		})
	}
}

func TestRewriter_SingleCall(t *testing.T) {
	t.Parallel()
	i := slices.IndexFunc(transcripts(t), func(tr transcript) bool { return tr.name == "two-calls" })
	upstream := transcripts(t)[i].upstream
	for name, pieces := range cuttings(upstream) {
		stream, fault := rewriteFor(&request.Chat{SingleCall: true}, rewriteOptions{}, pieces...)
		if fault != nil || bytes.Contains(stream, []byte(`"tool_calls":[{"index":1`)) || !bytes.Contains(stream, []byte(`"finish_reason":"tool_calls"`)) {
			t.Fatalf("%s: fault %v, stream:\n%s", name, fault, stream)
		}
		golden(t, "testdata/llama/two-calls.single.stream", stream)
	}
}

// TestRewriter_KeepsTheFirstOfCallsInOneChunk: this engine sends one at a time, but needn't.
func TestRewriter_KeepsTheFirstOfCallsInOneChunk(t *testing.T) {
	t.Parallel()
	stream, fault := rewriteFor(&request.Chat{SingleCall: true}, rewriteOptions{}, []byte(
		`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a"},{"index":1,"id":"b"}]}}]}`+"\n\n"+
			`data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c"}]},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n"))
	deltas := gjson.ParseBytes(bytes.ReplaceAll(stream, []byte("data: "), nil))
	if fault != nil || deltas.Get("choices.0.delta.tool_calls.#.id").Raw != `["a"]` || strings.Contains(string(stream), `"c"`) ||
		!strings.Contains(string(stream), `"delta":{},"logprobs":null,"finish_reason":"tool_calls"`) {
		t.Errorf("fault %v:\n%s", fault, stream)
	}
}

// merged is what a client sees of several answers whose pieces come in any order.
func merged(r *rand.Rand, usage bool, extra openai.Extra, answers ...[][]byte) []byte {
	tail := openai.NewChatTail(len(answers), usage, extra)
	rewriters := make([]wire.Rewriter, len(answers))
	for i := range answers {
		rewriters[i] = newRewriter(&request.Chat{}, rewriteOptions{Envelope: envelope, Choice: i, Tail: tail})
	}
	var dst []byte
	for left := slices.Clone(answers); ; {
		var open []int
		for i, pieces := range left {
			if len(pieces) > 0 {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			return dst
		}
		i := open[r.IntN(len(open))]
		dst = rewriters[i].Append(dst, left[i][0])
		if left[i] = left[i][1:]; len(left[i]) == 0 {
			dst = rewriters[i].Close(dst)
		}
	}
}

// TestChatTail_AnyOrderOfPieces: each choice reads as if it were alone, and the stream has one end, whatever the order in
// which the pieces of several answers come, and however they are cut.
func TestChatTail_AnyOrderOfPieces(t *testing.T) {
	t.Parallel()
	var answers []transcript
	for _, tr := range transcripts(t) {
		if events := decode(t, tr.upstream); isFinish(events[len(events)-1]) && len(tr.upstream) < 40_000 {
			answers = append(answers, tr)
		}
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		n := 1 + r.IntN(4)
		usage := r.IntN(2) == 0
		var pieces [][][]byte
		var want []string
		for i := range n {
			tr := answers[r.IntN(len(answers))]
			pieces = append(pieces, randomCuts(tr.upstream, seed+uint64(i)))
			alone, _ := rewrite(rewriteOptions{}, tr.upstream)
			want = append(want, choiceOf(t, alone, 0))
		}
		stream := merged(r, usage, withFigures, pieces...)
		for i := range n {
			if diff := cmp.Diff(want[i], choiceOf(t, stream, i)); diff != "" {
				t.Fatalf("seed %d, choice %d (-alone +among others):\n%s", seed, i, diff)
			}
		}
		wantOneEnd(t, stream, usage)
	}
}

func isFinish(ev translate.Event) bool {
	_, ok := ev.(translate.Finish)
	return ok
}

// choiceOf are the deltas and the finish reason of a choice.
func choiceOf(t *testing.T, stream []byte, index int) string {
	t.Helper()
	var all strings.Builder
	for _, data := range dataOf(t, stream) {
		for _, choice := range gjson.Get(data, "choices").Array() {
			if int(choice.Get("index").Int()) == index {
				all.WriteString(choice.Get("delta").Raw + choice.Get("finish_reason").Raw + "\n")
			}
		}
	}
	return all.String()
}

// dataOf are a stream's chunks, without the mark of the end. All of them have to be JSON.
func dataOf(t *testing.T, stream []byte) []string {
	t.Helper()
	var all []string
	for frame := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(frame, "data: ")
		if !ok && strings.HasPrefix(frame, ":") || data == "[DONE]" {
			continue
		}
		if !json.Valid([]byte(data)) {
			t.Fatalf("not JSON: %q", frame)
		}
		all = append(all, data)
	}
	return all
}

// wantOneEnd: the usage, if it is wanted, and the figures are in the last chunk and in no other, and one mark follows it.
func wantOneEnd(t *testing.T, stream []byte, usage bool) {
	t.Helper()
	if bytes.Count(stream, []byte("\n\ndata: [DONE]\n\n")) != 1 || !bytes.HasSuffix(stream, []byte("data: [DONE]\n\n")) {
		t.Fatalf("not one end:\n%s", stream)
	}
	all := dataOf(t, stream)
	for i, data := range all {
		isLast := i == len(all)-1
		if gjson.Get(data, "usage").Exists() != (usage && isLast) || gjson.Get(data, "stop_reason").Exists() != isLast {
			t.Fatalf("usage is wanted: %t; chunk %d of %d is %s", usage, i+1, len(all), data)
		}
	}
}
