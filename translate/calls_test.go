package translate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// deltas returns the deltas of the chunks of a stream.
func deltas(stream []byte) (all []string) {
	for line := range strings.Lines(string(stream)) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if delta := gjson.Get(data, "choices.0.delta"); delta.Exists() {
				all = append(all, delta.Raw)
			}
		}
	}
	return all
}

// TestRewriter_ArgumentsAreAlwaysThere: clients read the arguments of each piece, and all of a call's together as JSON.
func TestRewriter_ArgumentsAreAlwaysThere(t *testing.T) {
	t.Parallel()
	const begin = `{"index":0,"id":"a","type":"function","function":{"name":"now"}}`
	const mended = `{"index":0,"id":"a","type":"function","function":{"name":"now","arguments":""}}`
	const empty = `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`
	for name, tt := range map[string]struct {
		deltas []string
		finish string
		want   []string
	}{
		"none at all": {[]string{`{"tool_calls":[` + begin + `]}`}, "tool_calls", []string{`{"tool_calls":[` + mended + `]}`, empty, `{}`}},
		"an empty text": {
			[]string{`{"tool_calls":[` + mended + `]}`}, "tool_calls", []string{`{"tool_calls":[` + mended + `]}`, empty, `{}`},
		},
		"cut by the limit": {[]string{`{"tool_calls":[` + begin + `]}`}, "length", []string{`{"tool_calls":[` + mended + `]}`, `{}`}},
		"later": {
			[]string{`{"tool_calls":[` + begin + `]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`},
			"tool_calls",
			[]string{`{"tool_calls":[` + mended + `]}`, empty, `{}`},
		},
		"beside other things": {
			[]string{`{"role":"assistant","tool_calls":[` + begin + `],"reasoning_content":"Hm"}`},
			"tool_calls",
			[]string{`{"role":"assistant","tool_calls":[` + mended + `],"reasoning":"Hm"}`, empty, `{}`},
		},
		"no function": {[]string{`{"tool_calls":[{"index":0,"function":{}}]}`}, "tool_calls", []string{`{"tool_calls":[{"index":0,"function":{"arguments":""}}]}`, `{}`}},
		"text":        {[]string{`{"content":"a"}`}, "stop", []string{`{"content":"a"}`, `{}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := ""
			for _, delta := range tt.deltas {
				upstream += `data: {"choices":[{"finish_reason":null,"index":0,"delta":` + delta + "}]}\n\n"
			}
			upstream += `data: {"choices":[{"finish_reason":"` + tt.finish + `","index":0,"delta":{}}]}` + "\n\ndata: [DONE]\n\n"
			stream, fault := rewrite(rewriteOptions{}, []byte(upstream))
			if diff := cmp.Diff(tt.want, deltas(stream)); diff != "" || fault != nil {
				t.Errorf("%v (-want +got):\n%s", fault, diff)
			}
		})
	}
}

// A usage chunk has the engine's timings only if the request asks for them.
func TestRewriter_TimingsForThoseWhoAsk(t *testing.T) {
	t.Parallel()
	var upstream []byte
	for _, tr := range transcripts(t) {
		if tr.name == "timings-per-token" {
			upstream = tr.upstream
		}
	}
	for _, asked := range []bool{false, true} {
		stream, _ := rewriteFor(&request.Chat{Timings: asked}, rewriteOptions{IncludeUsage: true}, upstream)
		want := 0
		if asked { // each but the first, which only opens the answer, and the last two are one
			want = strings.Count(string(upstream), `"timings":{`) - 2
		}
		if n := strings.Count(string(stream), `"timings":{`); n != want {
			t.Errorf("asked %t: %d chunks have timings, want %d", asked, n, want)
		}
	}
	chat, bad := openai.ParseChat(testkit.Scan(t, `{"messages":[{"role":"user","content":"Hi"}],"timings_per_token":true}`), capsOf(request.Caps{}))
	if bad != nil || !chat.Timings {
		t.Errorf("%+v, %v", chat, bad)
	}
}

// Up to four unknown fields are passed on, but not those of the envelope.
func TestRewriter_UnknownFields(t *testing.T) {
	t.Parallel()
	stream, fault := rewrite(rewriteOptions{}, []byte(`data: {"choices":[{"delta":{"content":"a"}}],"id":"x","object":"y","a":1,"b":[2],"c":{},"d":"4","e":5}`+"\n\n"))
	const want = `"choices":[{"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null}],"a":1,"b":[2],"c":{},"d":"4"}` + "\n\n"
	if !strings.Contains(string(stream), want) || strings.Contains(string(stream), `"y"`) {
		t.Errorf("fault %v:\n%s", fault, stream)
	}
}

// An event with several data lines becomes one with a single line.
func TestRewriter_SeveralDataLines(t *testing.T) {
	t.Parallel()
	stream, fault := rewrite(rewriteOptions{}, []byte("data: {\"choices\":[{\"delta\":{\"content\":\ndata: \"a\"}}]}\n\n"))
	if !strings.Contains(string(stream), `"delta":{"content": "a"},"logprobs":null,"finish_reason":null}]}`+"\n\n") {
		t.Errorf("fault %v:\n%s", fault, stream)
	}
}
