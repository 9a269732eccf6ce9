package translate_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

// loads are the events of a load that a request waits for.
var loads = []translate.Event{
	translate.Load{Phase: translate.PhaseProgress, Instance: "lmcaddy/tinychat"},
	translate.Load{Phase: translate.PhaseProgress, Instance: "lmcaddy/tinychat", Progress: 0.25},
	translate.Load{Phase: translate.PhaseProgress, Instance: "lmcaddy/tinychat", Progress: 0.25},
	translate.Load{Phase: translate.PhaseProgress, Instance: "lmcaddy/tinychat", Progress: 1},
	translate.Load{Phase: translate.PhaseEnd, Instance: "lmcaddy/tinychat", Seconds: 1.25},
}

// nativeStream is what a client of the native chat sees of an answer that comes in these pieces, after some events, and
// its end's result.
func nativeStream(tb testing.TB, before []translate.Event, pieces ...[]byte) (stream []byte, result string) {
	tb.Helper()
	var s native.Stream
	var dst []byte
	for _, ev := range before {
		dst = s.Append(dst, ev)
	}
	dst = s.Append(s.Begin(dst, "lmcaddy/tinychat"), translate.Round{Number: 1})
	for _, ev := range decode(tb, pieces...) {
		dst = s.Append(dst, ev)
	}
	s.Answer.ResponseID = "resp_" + strings.Repeat("0a", 24)
	dst = s.End(dst)
	_, end, _ := bytes.Cut(dst, []byte("event: chat.end\ndata: "))
	return dst, gjson.GetBytes(end, "result").Raw
}

// nativeBody is the body of a client that doesn't stream.
func nativeBody(before, events []translate.Event) string {
	a := native.Answer{Instance: "lmcaddy/tinychat", ResponseID: "resp_" + strings.Repeat("0a", 24)}
	for _, ev := range append(before, events...) {
		a.Add(ev)
	}
	return string(a.AppendBody(nil))
}

// TestNativeStream_AnyCuttingGivesTheSame: of every transcript, and the result is the body in one piece.
func TestNativeStream_AnyCuttingGivesTheSame(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			want, result := nativeStream(t, loads, tr.upstream)
			events := decode(t, tr.upstream)
			if diff := cmp.Diff(nativeBody(loads, events), result); diff != "" {
				t.Errorf("(-body +result):\n%s", diff)
			}
			wantNative(t, want)
			for name, pieces := range cuttings(tr.upstream) {
				if got, _ := nativeStream(t, loads, pieces...); !bytes.Equal(want, got) {
					t.Fatalf("%s (-whole +cut):\n%s", name, cmp.Diff(string(want), string(got)))
				}
			}
		})
	}
}

// wantNative checks the frame of a stream: what goes into what. The specification's grammar as a whole is checked from
// outside, by the end-to-end tests.
func wantNative(t *testing.T, stream []byte) {
	t.Helper()
	open := ""
	names := []string{}
	for block := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		name, data, ok := strings.Cut(strings.TrimPrefix(block, "event: "), "\ndata: ")
		if !ok || !json.Valid([]byte(data)) || gjson.Get(data, "type").Str != name {
			t.Fatalf("no event: %q", block)
		}
		family, stage, _ := strings.Cut(name, ".")
		switch {
		case family == "chat" || family == "error":
		case stage == "start" && open == "":
			open = family
		case stage == "start" || open != family:
			t.Errorf("%s, while %q is open", name, open)
		case stage == "end":
			open = ""
		}
		names = append(names, name)
	}
	if names[0] != "chat.start" || names[len(names)-1] != "chat.end" || open != "" {
		t.Errorf("%q is open at the end of %v", open, names)
	}
}

// FuzzNativeStream: whatever an engine sends, the client sees JSON, in a frame that is whole.
func FuzzNativeStream(f *testing.F) {
	for _, tr := range transcripts(f) {
		f.Add(tr.upstream)
	}
	f.Add([]byte(`data: {"choices":[],"timings":{"predicted_per_second":1e999,"prompt_ms":-1e999}}` + "\n\ndata: [DONE]\n\n"))
	f.Fuzz(func(t *testing.T, upstream []byte) {
		stream, result := nativeStream(t, nil, upstream)
		wantNative(t, stream)
		if diff := cmp.Diff(nativeBody(nil, decode(t, upstream)), result); diff != "" {
			t.Errorf("(-body +result):\n%s", diff)
		}
	})
}
