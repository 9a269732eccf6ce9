package translate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/mlxlm"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// mlxDecoders return the decoders of mlx_lm.server's streams, by the folders of their transcripts.
var mlxDecoders = map[string]func() translate.Decoder{
	"testdata/mlx":      mlxlm.Wire{}.Decoder,
	"testdata/mlx-text": func() translate.Decoder { return mlxlm.Wire{}.CompletionDecoder(&request.Completion{}) },
}

// mlxStream is the client's stream of a chat with these events.
func mlxStream(events []translate.Event) []byte {
	chunks := openai.NewChatChunks(openai.ChunkOptions{Envelope: envelope, Tail: openai.NewChatTail(1, true, nil)})
	stream := openai.NewChatStream(chunks, false)
	var dst []byte
	for _, ev := range events {
		dst = stream.Append(dst, ev)
	}
	return stream.Flush(dst)
}

// TestMLXTranscripts compares what is made of mlx_lm.server's answers with golden files.
func TestMLXTranscripts(t *testing.T) {
	t.Parallel()
	for _, tr := range transcriptsIn(t, "testdata/mlx") {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			events := decodeWith(t, mlxlm.Wire{}.Decoder(), tr.upstream)
			wantGrammar(t, events)
			shown := messagesOptions{thinking: anthropic.ThinkingShown}
			tr.golden(t,
				view{"events", []byte(eventLines(t, events))},
				view{"chat stream", mlxStream(events)},
				view{"chat body", line(gather(openai.ReasoningPlain, events))},
				view{"messages stream", messagesStream(shown, events)},
			)
		})
	}
	for _, tr := range transcriptsIn(t, "testdata/mlx-text") {
		t.Run("text "+tr.name, func(t *testing.T) {
			t.Parallel()
			events := decodeWith(t, mlxDecoders["testdata/mlx-text"](), tr.upstream)
			wantGrammar(t, events)
			tr.golden(t, view{"events", []byte(eventLines(t, events))}, view{"stream", streamText(events, -1)}, view{"body", line(gatherText(events, -1))})
		})
	}
}

func TestMLXDecoder_AnyCuttingGivesTheSameEvents(t *testing.T) {
	t.Parallel()
	for dir, decoder := range mlxDecoders {
		for _, tr := range transcriptsIn(t, dir) {
			t.Run(dir+"/"+tr.name, func(t *testing.T) {
				t.Parallel()
				want := decodeWith(t, decoder(), tr.upstream)
				for name, pieces := range cuttings(tr.upstream) {
					if diff := cmp.Diff(want, decodeWith(t, decoder(), pieces...)); diff != "" {
						t.Fatalf("%s (-whole +cut):\n%s", name, diff)
					}
				}
			})
		}
	}
}

// An error returned by emit ends the call and is returned, at any event.
func TestMLXDecoder_StopsWhereTheReceiverDoes(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for _, tr := range transcriptsIn(t, "testdata/mlx") {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			for limit := range decodeWith(t, mlxlm.Wire{}.Decoder(), tr.upstream) {
				n := 0
				emit := func(translate.Event) error {
					if n++; n > limit {
						return enough
					}
					return nil
				}
				d := mlxlm.Wire{}.Decoder()
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

// decodeCut is decodeWith for a decoder that may end before the stream. It reports whether it did.
func decodeCut(tb testing.TB, d translate.Decoder, pieces ...[]byte) (events []translate.Event, cut bool) {
	tb.Helper()
	emit := func(ev translate.Event) error {
		events = append(events, ev)
		return nil
	}
	for _, p := range pieces {
		if err := d.Feed(bytes.Clone(p), emit); errors.Is(err, translate.ErrCut) {
			return events, true
		} else if err != nil {
			tb.Fatal(err)
		}
	}
	if err := d.Close(emit); err != nil {
		tb.Fatal(err)
	}
	return events, false
}

// A client that wants no parallel calls gets the first one, and the answer ends there even if the engine would go on.
func TestSingleCall(t *testing.T) {
	t.Parallel()
	const end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":50}}\n\ndata: [DONE]\n\n"
	delta := func(fields string) string { return `data: {"choices":[{"delta":{` + fields + `}}]}` + "\n\n" }
	call := func(name string) string {
		return delta(`"tool_calls":[{"id":"` + name + `","function":{"name":"` + name + `","arguments":"{}"}}]`)
	}
	const first = "call 0: a, id a\ncall 0: arguments \"{}\"\ncall 0: done\n"
	const exact = "usage: prompt 7, cached 0, completion 50, reasoning 0\nfinish: tool_calls\n"
	for name, tt := range map[string]struct {
		stream, want string
		cut          bool
	}{
		"one call":          {call("a") + end, first + exact, false},
		"white space":       {call("a") + delta(`"content":"\n"`) + end, first + exact, false},
		"two calls":         {": keepalive 7/7\n\n" + call("a") + call("b") + end, "prompt: 7 of 7, 0 cached\n" + first + "usage: prompt 7, cached 0, completion 2, reasoning 0\nfinish: tool_calls\n", true},
		"a text":            {call("a") + delta(`"content":"So"`) + end, first + "usage: prompt 0, cached 0, completion 2, reasoning 0\nfinish: tool_calls\n", true},
		"a thought":         {call("a") + delta(`"reasoning":"So"`) + end, first + "usage: prompt 0, cached 0, completion 2, reasoning 1\nfinish: tool_calls\n", true},
		"no call":           {delta(`"content":"So"`) + delta(`"content":"So"`) + `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", "text: \"So\"\ntext: \"So\"\nusage: prompt 0, cached 0, completion 2, reasoning 0\nfinish: stop\n", false},
		"it breaks off":     {call("a"), first + "usage: prompt 0, cached 0, completion 1, reasoning 0\nfault: 502 " + translate.BrokenOff().Message + "\n", false},
		"white space first": {delta(`"content":"\n"`) + call("a") + end, "text: \"\\n\"\n" + first + exact, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, pieces := range [][][]byte{{[]byte(tt.stream)}, single([]byte(tt.stream))} {
				events, cut := decodeCut(t, wire.DecoderOf(mlxlm.Wire{}, &request.Chat{SingleCall: true, Stops: []string{"END"}}, mlxlm.Wire{}.Decoder()), pieces...)
				if diff := cmp.Diff(tt.want, eventLines(t, events)); diff != "" || cut != tt.cut {
					t.Errorf("cut %t (-want +got):\n%s", cut, diff)
				}
			}
		})
	}
}

// What looks like a call is text if there are no tools.
func TestMLXDecoder_NoTools(t *testing.T) {
	t.Parallel()
	const head = `data: {"choices":[{"index":0,"finish_reason":null,"delta":{"role":"assistant",`
	stream := head + `"content":"So: "}}]}

` + head + `"tool_calls":[{"function":{"name":"a\"b","arguments":"{\"x\": 1}"},"type":"function","id":"1","index":0}]}}]}

` + head + `"tool_calls":[{"function":{"name":"c","arguments":"{"},"type":"function","id":"2","index":1}]}}]}

data: {"choices":[{"index":0,"finish_reason":"tool_calls","delta":{"role":"assistant"}}]}

data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":12}}

data: [DONE]

`
	events, _ := decodeCut(t, wire.DecoderOf(mlxlm.Wire{}, &request.Chat{NoTools: true}, mlxlm.Wire{}.Decoder()), []byte(stream))
	want := `text: "So: "
text: "\u003ctool_call\u003e\n{\"name\": \"a\\\"b\", \"arguments\": {\"x\": 1}}\n\u003c/tool_call\u003e"
text: "\u003ctool_call\u003e\n{\"name\": \"c\", \"arguments\": \"{\"}\n\u003c/tool_call\u003e"
usage: prompt 9, cached 0, completion 12, reasoning 0
finish: stop
`
	if diff := cmp.Diff(want, eventLines(t, events)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A text completion ends before its stop strings, which the server isn't told.
func TestMLXCompletion_EndsAtStops(t *testing.T) {
	t.Parallel()
	for _, tr := range transcriptsIn(t, "testdata/mlx-text") {
		if tr.name != "stop" {
			continue
		}
		for _, pieces := range cuttings(tr.upstream) {
			events, cut := decodeCut(t, mlxlm.Wire{}.CompletionDecoder(&request.Completion{Stop: []string{"thirty", "two,"}}), pieces...)
			want := "prompt: 4 of 4, 0 cached\ntext: \"One, \"\nusage: prompt 4, cached 0, completion 7, reasoning 0\nstop: stopStringFound two,\nfinish: stop\n"
			if diff := cmp.Diff(want, eventLines(t, events)); diff != "" || !cut {
				t.Errorf("cut %t (-want +got):\n%s", cut, diff)
			}
		}
	}
}

// FuzzMLXDecoder checks that events follow the grammar and don't depend on the reads.
func FuzzMLXDecoder(f *testing.F) {
	for dir := range mlxDecoders {
		for i, tr := range transcriptsIn(f, dir) {
			f.Add(tr.upstream, uint64(i))
		}
	}
	f.Fuzz(func(t *testing.T, upstream []byte, seed uint64) {
		for _, decoder := range mlxDecoders {
			events := decodeWith(t, decoder(), upstream)
			wantGrammar(t, events)
			for _, pieces := range [][][]byte{single(upstream), randomCuts(upstream, seed)} {
				if diff := cmp.Diff(events, decodeWith(t, decoder(), pieces...)); diff != "" {
					t.Fatalf("(-whole +cut):\n%s", diff)
				}
			}
			if body := gather(openai.ReasoningPlain, events); len(body) > 0 && !json.Valid(body) {
				t.Fatalf("the body is not JSON: %s", body)
			}
		}
	})
}
