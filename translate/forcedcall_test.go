package translate_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// spoken is an engine's stream of pieces: what begins with "~" is thinking. Each says how many tokens there are so far; a piece
// that begins with "+" is of two.
func spoken(pieces ...string) []byte {
	var b bytes.Buffer
	tokens := 1 // the tag that opens the thinking
	for _, p := range pieces {
		field := "content"
		tokens++
		if text, ok := strings.CutPrefix(p, "+"); ok {
			p = text
			tokens++
		}
		if text, ok := strings.CutPrefix(p, "~"); ok {
			field, p = "reasoning_content", text
		}
		fmt.Fprintf(&b, `data: {"choices":[{"finish_reason":null,"index":0,"delta":{"%s":%s}}],"id":"x","timings":{"cache_n":3,"prompt_n":4,"predicted_n":%d}}`+"\n\n",
			field, jsonbody.AppendString(nil, p), tokens)
	}
	fmt.Fprintf(&b, `data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}`+"\n\n"+
		`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":3}}}`+"\n\ndata: [DONE]\n\n", tokens+1)
	return b.Bytes()
}

// decodedFor returns the events of the answer to a chat, and whether it was cut off before the end of the engine's stream.
func decodedFor(t *testing.T, chat *request.Chat, stream []byte, size int) (events string, cut bool) {
	t.Helper()
	d := wire.DecoderOf(llamaserver.Wire{}, chat, llamaserver.Wire{}.Decoder())
	var all []translate.Event
	emit := func(ev translate.Event) error {
		all = append(all, ev)
		return nil
	}
	for len(stream) > 0 && !cut {
		n := min(size, len(stream))
		err := d.Feed(bytes.Clone(stream[:n]), emit)
		if cut = errors.Is(err, translate.ErrCut); err != nil && !cut {
			t.Fatal(err)
		}
		stream = stream[n:]
	}
	if err := d.Close(emit); err != nil {
		t.Fatal(err)
	}
	return eventLines(t, all), cut
}

func TestAnswer_EndsAtWhatTheRequestSays(t *testing.T) {
	t.Parallel()
	const timed = "timings: prompt 0 ms, predicted 0 ms, 0 a second, draft 0, accepted 0\n"
	stops := &request.Chat{Stops: []string{"\n", "END"}, Thinks: true}
	forced := &request.Chat{Forced: true, Stops: []string{"}", "name"}}
	either := &request.Chat{Either: &request.Either{Tools: []string{"e"}}}
	for name, tt := range map[string]struct {
		chat   *request.Chat
		pieces []string
		want   string
		cut    bool
	}{
		"a stop string, but not in the thinking": {
			stops,
			[]string{"~One\n", "~END", "a ", "bE", "N", "Dc", "d"},
			"reasoning: \"One\\n\"\nreasoning: \"END\"\ntext: \"a \"\ntext: \"b\"\nusage: prompt 7, cached 3, completion 7, reasoning 2\n" +
				"stop: stopStringFound END\nfinish: stop\n", true,
		},
		"what only begins like one": {
			stops,
			[]string{"E", "N", "d", "E"},
			"text: \"ENd\"\ntext: \"E\"\nusage: prompt 7, cached 3, completion 6, reasoning 0\n" + timed + "finish: stop\n", false,
		},
		"a call": {
			forced,
			[]string{"~I ", "~call.", `{"`, "name", `": "e\u0063ho`, `",`, `"arguments"`, `: {"a": "}\"`, `]"}`, "}"},
			"reasoning: \"I \"\nreasoning: \"call.\"\ncall 0: echo, id \ncall 0: arguments \"{\\\"a\\\": \\\"}\\\\\\\"\"\ncall 0: arguments \"]\\\"}\"\ncall 0: done\n" +
				"usage: prompt 7, cached 3, completion 12, reasoning 2\n" + timed + "finish: tool_calls\n", false,
		},
		"nested arguments": {
			forced,
			[]string{`{"name":"e","arguments":{"a":[1,{"b":[]}],`, `"c":{}}`, "}"},
			"call 0: e, id \ncall 0: arguments \"{\\\"a\\\":[1,{\\\"b\\\":[]}],\"\ncall 0: arguments \"\\\"c\\\":{}}\"\ncall 0: done\n" +
				"usage: prompt 7, cached 3, completion 5, reasoning 0\n" + timed + "finish: tool_calls\n", false,
		},
		"a long call where the request has a limit": {
			&request.Chat{Forced: true}, append([]string{`{"name":"e","arguments":{"`}, strings.Split(strings.Repeat("a", request.MaxCallTokens+9), "")...),
			"call 0: e, id \ncall 0: arguments \"{\\\"\"\n" + strings.Repeat("call 0: arguments \"a\"\n", request.MaxCallTokens+9) +
				"call 0: done\nusage: prompt 7, cached 3, completion 4108, reasoning 0\n" + timed + "finish: stop\n", false,
		},
		"a call in a fence": {
			forced,
			[]string{"```json\n{\"name\":\"e\",\"arguments\":{}}\n```"},
			"call 0: e, id \ncall 0: arguments \"{}\"\ncall 0: done\nusage: prompt 7, cached 3, completion 3, reasoning 0\n" + timed + "finish: tool_calls\n", false,
		},
		"no call": {
			forced,
			[]string{"Hello", " there"},
			"text: \"Hello\"\ntext: \" there\"\nusage: prompt 7, cached 3, completion 4, reasoning 0\n" + timed + "finish: stop\n", false,
		},
		"arguments that are no object": {
			forced,
			[]string{`{"name":"e","arg`, `uments": `, `[1]}`},
			"text: \"{\\\"name\\\":\\\"e\\\",\\\"arguments\\\": [1]}\"\nusage: prompt 7, cached 3, completion 5, reasoning 0\n" + timed + "finish: stop\n", false,
		},
		"a call that needn't be one": {
			either,
			[]string{`{"na`, `me" `, `: "e", "arguments":`, ` {"a":`, `1}`, "}"},
			"call 0: e, id \ncall 0: arguments \"{\\\"a\\\":\"\ncall 0: arguments \"1}\"\ncall 0: done\n" +
				"usage: prompt 7, cached 3, completion 8, reasoning 0\n" + timed + "finish: tool_calls\n", false,
		},
		"an answer instead": {
			either,
			[]string{"{", `"na`, `ture":`, `1}`},
			"text: \"{\\\"nature\\\":\"\ntext: \"1}\"\nusage: prompt 7, cached 3, completion 6, reasoning 0\n" + timed + "finish: stop\n", false,
		},
		"an answer like a call, of no tool": {
			either,
			[]string{`{"name":"E","arguments":`, `{}}`},
			"text: \"{\\\"name\\\":\\\"E\\\",\\\"arguments\\\":{}}\"\nusage: prompt 7, cached 3, completion 4, reasoning 0\n" + timed + "finish: stop\n", false,
		},
		"an answer instead, up to a stop string": {
			&request.Chat{Either: either.Either, Stops: []string{"END"}},
			[]string{`{"n":`, `"1EN`, `D"}`},
			"text: \"{\\\"n\\\":\"\ntext: \"\\\"1\"\nusage: prompt 7, cached 3, completion 4, reasoning 0\nstop: stopStringFound END\nfinish: stop\n", true,
		},
		"a call without an end": {
			&request.Chat{Forced: true, Limit: request.MaxForcedTokens}, append([]string{`{"name":"e","arguments":{"`}, strings.Split(strings.Repeat("a", request.MaxCallTokens+9), "")...),
			"call 0: e, id \ncall 0: arguments \"{\\\"\"\n" + strings.Repeat("call 0: arguments \"a\"\n", request.MaxCallTokens-1) +
				"call 0: done\nusage: prompt 7, cached 3, completion 4097, reasoning 0\nfinish: length\n", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1 << 20, 100, 7} {
				got, cut := decodedFor(t, tt.chat, spoken(tt.pieces...), size)
				if diff := cmp.Diff(tt.want, got); diff != "" || cut != tt.cut {
					t.Fatalf("in pieces of %d, cut %t (-want +got):\n%s", size, cut, diff)
				}
			}
		})
	}
}

// A stream that is encoded from events has the same content as they.
func TestAnswer_StreamsSayWhatBodiesSay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		chat *request.Chat
		want string // of the stream: reasoning, content, calls, finish reason, tokens
	}{
		"stops":  {&request.Chat{Stops: []string{"gume"}}, `Hm.|{"name":"echo","ar||stop|5`},
		"forced": {&request.Chat{Forced: true}, `Hm.||call_0_0_0 function echo{"a":1}|tool_calls|9`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := spoken("~H", "~m.", `{"name":"echo"`, `,"argument`, `s":{`, `"a":1}`, "}")
			stream, fault := rewriteFor(tt.chat, rewriteOptions{IncludeUsage: true}, upstream[:50], upstream[50:])
			if fault != nil {
				t.Fatal(fault)
			}
			var reasoning, content, calls, finish string
			var tokens int64
			for frame := range strings.SplitSeq(string(stream), "\n\n") {
				c := gjson.Parse(strings.TrimPrefix(frame, "data: "))
				delta := c.Get("choices.0.delta")
				reasoning += delta.Get("reasoning").Str
				content += delta.Get("content").Str
				for _, call := range delta.Get("tool_calls").Array() {
					calls += strings.TrimSpace(call.Get("id").Str+" "+call.Get("type").Str+" "+call.Get("function.name").Str) + call.Get("function.arguments").Str
				}
				finish += c.Get("choices.0.finish_reason").Str
				tokens += c.Get("usage.completion_tokens").Int()
			}
			got := fmt.Sprintf("%s|%s|%s|%s|%d", reasoning, content, calls, finish, tokens)
			if got != tt.want || !strings.HasSuffix(string(stream), "data: [DONE]\n\n") {
				t.Errorf("%s\n%s", got, stream)
			}
		})
	}
}

func TestThoughtTokens(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pieces []string
		want   int
	}{
		"a token to a piece":              {[]string{"~a", "~b", "c"}, 2},
		"characters of two tokens":        {[]string{"~a", "+~é", "~b", "+~è", "c"}, 6},
		"a first character of two tokens": {[]string{"+~é", "~b", "c"}, 3},
		"none":                            {[]string{"a", "b"}, 0},
		"a tag of two tokens before it":   {[]string{"+~a", "~b", "c"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := decodedFor(t, &request.Chat{}, spoken(tt.pieces...), 1<<20)
			if !strings.Contains(got, fmt.Sprintf("reasoning %d\n", tt.want)) {
				t.Errorf("want %d:\n%s", tt.want, got)
			}
			r := newRewriter(&request.Chat{}, rewriteOptions{})
			r.Append(nil, spoken(tt.pieces...))
			if u := r.Usage(); u.Reasoning != tt.want {
				t.Errorf("the rewriter counts %d, want %d", u.Reasoning, tt.want)
			}
		})
	}
}

func TestToolChoice_ADemandedCallIsBounded(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required"`
	for name, tt := range map[string]struct{ fields, want string }{
		"without a limit":   {`"messages":[{"role":"user","content":"a"}]`, "16384"},
		"with one":          {`"max_tokens":99999,"messages":[{"role":"user","content":"a"}]`, "99999"},
		"with one of none":  {`"max_tokens":-1,"messages":[{"role":"user","content":"a"}]`, "16384"},
		"of a begun answer": {`"messages":[{"role":"assistant","content":"a"}]`, `"tool_choice" demands a call`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := testkit.Scan(t, `{`+tt.fields+`,`+tools+`}`)
			chat, bad := openai.ParseChat(body, capsOf(request.Caps{}))
			if bad != nil {
				if !strings.HasPrefix(bad.Message, tt.want) {
					t.Error(bad)
				}
				return
			}
			sent := gjson.ParseBytes(bytes.Join(llamaserver.Wire{}.Chat(body, chat, 0).Body, nil))
			if got := sent.Get("max_tokens").Raw; got != tt.want || !chat.Forced || sent.Get("tool_choice").Str != "none" || !sent.Get("response_format").Exists() {
				t.Errorf("%s", sent.Raw)
			}
		})
	}
}

// TestAnswer_BreaksOffAmidAStopString: the text that may have become a stop string is the client's.
func TestAnswer_BreaksOffAmidAStopString(t *testing.T) {
	t.Parallel()
	upstream := `data: {"choices":[{"index":0,"delta":{"content":"a EN"},"finish_reason":null}]}` + "\n\n"
	got, fault := rewriteFor(&request.Chat{Stops: []string{"END"}}, rewriteOptions{}, []byte(upstream))
	var text string
	for line := range strings.Lines(string(got)) {
		text += gjson.Get(strings.TrimPrefix(line, "data: "), "choices.0.delta.content").Str
	}
	if text != "a EN" || fault == nil {
		t.Errorf("text %q, fault %v", text, fault)
	}
}
