package translate_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
	"github.com/tidwall/gjson"
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

// TestAnswer_StreamsSayWhatBodiesSay: the long way to an OpenAI-style stream comes to the same as the events.
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
			stream, fault := rewriteFor(tt.chat, wire.RewriteOptions{IncludeUsage: true}, upstream[:50], upstream[50:])
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
			body := scanned(t, `{`+tt.fields+`,`+tools+`}`)
			chat, bad := openai.ParseChat(body, request.Caps{})
			if bad != nil {
				if !strings.HasPrefix(bad.Message, tt.want) {
					t.Error(bad)
				}
				return
			}
			sent := gjson.ParseBytes(bytes.Join(llamaserver.Wire{}.Chat(body, chat, 0), nil))
			if got := sent.Get("max_tokens").Raw; got != tt.want || !chat.Forced || sent.Get("tool_choice").Exists() || !sent.Get("response_format").Exists() {
				t.Errorf("%s", sent.Raw)
			}
		})
	}
}
