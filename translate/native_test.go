package translate_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// loads are the events of a load.
var loads = []translate.Event{
	translate.Load{Phase: translate.PhaseProgress, Instance: "lmcaddy/tinychat"},
	translate.Load{Phase: translate.PhaseProgress, Instance: "lmcaddy/tinychat", Progress: 0.25},
	translate.Load{Phase: translate.PhaseProgress, Instance: "lmcaddy/tinychat", Progress: 0.25},
	translate.Load{Phase: translate.PhaseProgress, Instance: "lmcaddy/tinychat", Progress: 1},
	translate.Load{Phase: translate.PhaseEnd, Instance: "lmcaddy/tinychat", Seconds: 1.25},
}

// nativeStream returns the native stream for an engine's stream in these pieces, after the events in before, and its result.
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
	s.ResponseID = "resp_" + strings.Repeat("0a", 24)
	dst = s.End(dst)
	_, end, _ := bytes.Cut(dst, []byte("event: chat.end\ndata: "))
	return dst, gjson.GetBytes(end, "result").Raw
}

// nativeBody returns the answer in one piece.
func nativeBody(before, events []translate.Event) string {
	a := native.Answer{Instance: "lmcaddy/tinychat", ResponseID: "resp_" + strings.Repeat("0a", 24)}
	for _, ev := range append(before, events...) {
		a.Add(ev)
	}
	return string(a.AppendBody(nil))
}

// The stream doesn't depend on the reads, and its result is the body in one piece.
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

// FuzzNativeStream checks that clients receive complete events with JSON.
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

// FuzzNativeChat checks that any request is rejected with an error for the client, or becomes a valid request to the engine, and
// that its input can be returned as it was.
func FuzzNativeChat(f *testing.F) {
	for _, body := range append(bodies,
		`{"model":"m","input":"hi","system_prompt":"s","previous_response_id":"resp_1","store":false,"reasoning":"off","context_length":9}`,
		`{"input":[{"type":"message","content":"a"},{"type":"image","data_url":"data:image/png;base64,`+testkit.Pixel+`"}],"temperature":0.5,"top_k":1e2}`,
		`{"input":[{"type":"image","data_url":"data:image/\";base64,AAEC"}],"stop":["a"],"seed":1}`,
		`{"input":"hi","preset":"p","max_output_tokens":1,"integrations":[1],"temperature":2}`,
	) {
		f.Add([]byte(body), true, true)
	}
	defaults := map[string]json.RawMessage{"temperature": json.RawMessage("0.5"), "max_tokens": json.RawMessage("7"), "system_prompt": json.RawMessage(`"Hi"`)}
	f.Fuzz(func(t *testing.T, raw []byte, vision, preset bool) {
		body, err := jsonbody.Scan(raw)
		if err == nil && preset {
			body, err = native.WithDefaults(body, "preset", defaults)
		}
		if err != nil {
			return
		}
		chat, err := native.ParseChat(body, "m", capsOf(request.Caps{Vision: vision, Reasoning: []string{"off", "on"}}))
		if err != nil {
			if err.Status() != 400 || err.EffectiveCode() == "" || err.Message == "" {
				t.Fatalf("refused by %+v", err)
			}
			return
		}
		upstream, err := chat.Upstream([]translate.Item{chat.Input}, nil)
		if err != nil {
			t.Fatalf("the engine's request: %v", err)
		}
		sent := bytes.Join(llamaserver.Wire{}.Chat(upstream, &request.Chat{N: 1}, 0).Body, nil)
		if !json.Valid(sent) || len(gjson.GetBytes(sent, "messages").Array()) != 1 {
			t.Fatalf("sent: %s", sent)
		}
		_, input := native.Input([]translate.Item{chat.Input})
		var again []byte
		for i, item := range input {
			again = append(append(again, ",["[min(i, 1)^1]), item...)
		}
		same, err := native.ParseChat(testkit.Scan(t, `{"input":`+string(again)+`]}`), "m", capsOf(request.Caps{Vision: true}))
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if diff := cmp.Diff(chat.Input, same.Input); diff != "" {
			t.Fatalf("(-said +told again):\n%s", diff)
		}
	})
}
