package translate_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
)

// everyCutUpTo is the maximum length of a transcript that is cut at every position, which takes quadratic time.
const everyCutUpTo = 2600

// seeds are the seeds of the random cuts, fixed so that failures can be reproduced.
var seeds = []uint64{1, 2, 3, 5, 8, 13, 21, 34}

// cuttings returns several ways to split p into reads.
func cuttings(p []byte) map[string][][]byte {
	all := map[string][][]byte{"one byte at a time": single(p)}
	for _, seed := range seeds {
		all[fmt.Sprintf("seed %d", seed)] = randomCuts(p, seed)
	}
	if len(p) <= everyCutUpTo {
		for i := range p {
			all[fmt.Sprintf("cut at %d", i)] = [][]byte{p[:i], p[i:]}
		}
	}
	return all
}

func single(p []byte) [][]byte {
	var pieces [][]byte
	for i := range p {
		pieces = append(pieces, p[i:i+1])
	}
	return pieces
}

// randomCuts splits p into pieces of very different lengths, including empty ones.
func randomCuts(p []byte, seed uint64) [][]byte {
	r := rand.New(rand.NewPCG(seed, 0))
	var pieces [][]byte
	for len(p) > 0 {
		n := min(r.IntN(1<<r.IntN(12)), len(p))
		pieces = append(pieces, p[:n])
		p = p[n:]
	}
	return pieces
}

func TestDecoder_AnyCuttingGivesTheSameEvents(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			want := decode(t, tr.upstream)
			for name, pieces := range cuttings(tr.upstream) {
				if diff := cmp.Diff(want, decode(t, pieces...)); diff != "" {
					t.Fatalf("%s (-whole +cut):\n%s", name, diff)
				}
			}
		})
	}
}

func TestRewriter_AnyCuttingGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			want, wantFault := rewrite(rewriteOptions{}, tr.upstream)
			for name, pieces := range cuttings(tr.upstream) {
				got, fault := rewrite(rewriteOptions{}, pieces...)
				if diff := cmp.Diff(string(want), string(got)) + cmp.Diff(wantFault, fault); diff != "" {
					t.Fatalf("%s (-whole +cut):\n%s", name, diff)
				}
			}
		})
	}
}

// Nothing follows the end, not even a fault if the bytes after [DONE] are too long for a frame.
func TestNothingFollowsTheEnd(t *testing.T) {
	t.Parallel()
	end := `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	stream := append([]byte(end), bytes.Repeat([]byte{'x'}, jsonbody.MaxFrame+2)...)
	if diff := cmp.Diff([]translate.Event{translate.Finish{Reason: translate.FinishStop}}, decode(t, stream)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	got, fault := rewrite(rewriteOptions{}, stream)
	want := `data: {"id":"chatcmpl-0","object":"chat.completion.chunk","created":1700000000,"model":"lmcaddy/tinychat","system_fingerprint":"b1",` +
		`"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	if string(got) != want || fault != nil {
		t.Errorf("fault %v, stream:\n%s", fault, got)
	}
}

// An error returned by emit ends the call and is returned, at any event.
func TestDecoder_StopsWhereTheReceiverDoes(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			for limit := range decode(t, tr.upstream) {
				n := 0
				emit := func(translate.Event) error {
					if n++; n > limit {
						return enough
					}
					return nil
				}
				d := llamaserver.Wire{}.Decoder()
				err := d.Feed(bytes.Clone(tr.upstream), emit)
				if err == nil {
					err = d.Close(emit)
				}
				if !errors.Is(err, enough) || n != limit+1 {
					t.Fatalf("after %d events: %v, and %d more calls of emit", limit, err, n-limit)
				}
			}
		})
	}
}

// Whether a frame is too long doesn't depend on the reads.
func TestFrames_LimitIsTheSameForAnyCutting(t *testing.T) {
	t.Parallel()
	chunk := []byte(`data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n\n")
	tests := map[string]struct {
		over int // how much longer than allowed the second frame is
		eol  string
		want translate.Event
	}{
		"the longest":        {0, "\n", translate.Finish{Reason: translate.FinishStop}},
		"too long":           {1, "\n", translate.Fault{Err: translate.Nonsense()}},
		"the longest, CRLF":  {0, "\r\n", translate.Finish{Reason: translate.FinishStop}},
		"one too long, CRLF": {1, "\r\n", translate.Fault{Err: translate.Nonsense()}},
		"far too long":       {1 << 20, "\n", translate.Fault{Err: translate.Nonsense()}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pad := jsonbody.MaxFrame + tt.over - len(": ") - len(tt.eol)
			long := append(append([]byte(": "), bytes.Repeat([]byte{'x'}, pad)...), tt.eol+tt.eol...)
			stream := append(append(bytes.Clone(chunk), long...), "data: [DONE]\n\n"...)
			last := len(chunk) + len(long)
			for _, pieces := range [][][]byte{
				{stream},
				{stream[:last-1], stream[last-1:]},
				{stream[:last-len(tt.eol)], stream[last-len(tt.eol):]},
				{stream[:len(chunk)+9], stream[len(chunk)+9 : last-2], stream[last-2:]},
			} {
				want := []translate.Event{translate.Text{Text: "Hi"}, tt.want}
				if diff := cmp.Diff(want, decode(t, pieces...)); diff != "" {
					t.Errorf("in %d pieces (-want +got):\n%s", len(pieces), diff)
				}
				_, fault := rewrite(rewriteOptions{}, pieces...)
				if _, failed := tt.want.(translate.Fault); failed != (fault != nil) {
					t.Errorf("in %d pieces the rewriter's fault is %v", len(pieces), fault)
				}
			}
		})
	}
}
