package translate_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// chainOf returns the chain of a request's prompt: a chat with messages, one of the Messages API with max_tokens, or a text completion.
func chainOf(tb testing.TB, raw string) prefix.Chain {
	tb.Helper()
	m := prefix.New(1)
	body, sees := testkit.Scan(tb, raw), capsOf(request.Caps{Vision: true, Audio: true, Reasoning: []string{"low", "high"}})
	switch {
	case body.Value("prompt") != nil:
		c, err := openai.ParseCompletion(body, sees)
		if err != nil {
			tb.Fatal(err)
		}
		wire.AddText(c, len(c.Prompts)-1, m)
	case body.Value("max_tokens") != nil:
		c, err := anthropic.ParseMessages(body, sees)
		if err != nil {
			tb.Fatal(err)
		}
		if body, err = c.Upstream(); err != nil {
			tb.Fatal(err)
		}
		wire.AddChat(body, &c.Chat, m)
	default:
		c, err := openai.ParseChat(body, sees)
		if err != nil {
			tb.Fatal(err)
		}
		wire.AddChat(body, c, m)
	}
	return m.Chain()
}

// Prompts have in common what the engine can use again.
func TestPrompter_Common(t *testing.T) {
	t.Parallel()
	const (
		sys    = `{"role":"system","content":"Be brief."}`
		hi     = `{"role":"user","content":"Hi"}`
		answer = `{"role":"assistant","content":"Hello"}`
		again  = `{"role":"user","content":"Again"}`
		tool   = `{"type":"function","function":{"name":"%s","parameters":{"type":"object"}}}`
	)
	chat := func(fields string, messages ...string) string {
		return `{` + fields + `"messages":[` + strings.Join(messages, ",") + `]}`
	}
	picture := func(url string) string {
		return `{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + url + `"}}]}`
	}
	tools := func(name string) string { return `"tools":[` + fmt.Sprintf(tool, name) + `],` }
	block := func(text, more string) string { return `[{"type":"text","text":"` + text + `"` + more + `}]` }
	const mark = `,"cache_control":{"type":"ephemeral"}`
	claude := func(system, first, rest string) string {
		return `{"max_tokens":9,"system":` + system + `,"messages":[{"role":"user","content":` + first + `}` + rest + `]}`
	}
	long := strings.Repeat("a story ", 500)
	for name, tt := range map[string]struct {
		a, b string
		want int // links in common
		all  bool
	}{
		"the next turn":            {chat("", sys, hi), chat("", sys, hi, answer, again), 3, true},
		"the same system prompt":   {chat("", sys, hi), chat("", sys, again), 2, false},
		"nothing but the model":    {chat("", hi), chat("", again), 1, false},
		"other sampling":           {chat(`"temperature":1,"max_completion_tokens":5,"stop":["a"],"seed":1,`, sys, hi), chat(`"stream":true,`, sys, hi), 3, true},
		"another format":           {chat(`"response_format":{"type":"json_object"},`, hi), chat("", hi), 2, true},
		"the same tools":           {chat(tools("f"), hi), chat(tools("f"), hi, answer, again), 2, true},
		"other tools":              {chat(tools("f"), hi), chat(tools("g"), hi), 0, false},
		"tools and none":           {chat(tools("f"), hi), chat("", hi), 0, false},
		"another effort":           {chat(`"reasoning_effort":"low",`, hi), chat(`"reasoning_effort":"high",`, hi), 0, false},
		"an effort that is as low": {chat(`"reasoning_effort":"low",`, hi), chat(`"reasoning_effort":"minimal",`, hi), 2, true},
		"other template values":    {chat(`"chat_template_kwargs":{"enable_thinking":false},`, hi), chat("", hi), 0, false},
		"null":                     {chat(`"tools":null,"reasoning_effort":null,`, hi), chat("", hi), 2, true},
		"a mark of the client's":   {chat("", `{"role":"user","content":`+block("Hi", mark)+`}`), chat("", `{"role":"user","content":`+block("Hi", "")+`}`, answer, again), 2, true},
		"the same image":           {chat("", picture(testkit.Pixel), hi), chat("", picture(testkit.Pixel), again), 2, false},
		"another image":            {chat("", sys, picture(testkit.Pixel)), chat("", sys, picture(strings.TrimPrefix(testkit.PNG(t, 2, 2), "data:image/png;base64,"))), 2, false},
		"a system prompt in parts": {claude(block("Be brief.", mark), `"Hi"`, ""), claude(`"Be brief."`, `"Hi"`, ""), 3, true},
		"marks that move": {
			claude(block("Be brief.", mark), block("Hi", mark), ""),
			claude(block("Be brief.", ""), block("Hi", ""), `,{"role":"assistant","content":"Hello"},{"role":"user","content":`+block("Again", mark)+`}`), 3, true,
		},
		"a text that goes on":     {`{"prompt":"` + long + `"}`, `{"prompt":"` + long + `and so on"}`, 15, true},
		"a very long text":        {`{"prompt":"` + strings.Repeat(long, 20) + `"}`, `{"prompt":"` + strings.Repeat(long, 20) + `and so on"}`, 151, true},
		"a long text and another": {`{"prompt":"` + long + `"}`, `{"prompt":"Hello ` + long + `"}`, 0, false},
		"a begun answer":          {chat("", sys, hi, `{"content":"Hel","role":"assistant"}`), chat("", sys, hi, answer, again), 3, true},
		"a begun answer in parts": {chat("", sys, hi, `{"role":"assistant","content":`+block("Hel", "")+`}`), chat("", sys, hi, answer, again), 3, true},
		"a text":                  {`{"prompt":"Hello"}`, `{"prompt":"Hello"}`, 1, true},
		"tokens that go on":       {`{"prompt":[` + strings.Repeat("123,", 300) + `1]}`, `{"prompt":[` + strings.Repeat("123,", 300) + `1,2]}`, 4, true},
		"a gap":                   {`{"prompt":"Hello","suffix":"x"}`, `{"prompt":"Hello"}`, 0, false},
		"a gap with another end":  {`{"prompt":"Hello","suffix":"x"}`, `{"prompt":"Hello","suffix":"y"}`, 2, false},
		"the last of two prompts": {`{"prompt":["a","b"]}`, `{"prompt":"b"}`, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := chainOf(t, tt.a), chainOf(t, tt.b)
			if got := a.Common(b); got != tt.want || tt.all != (got == len(a)) {
				t.Errorf("%d of %d and %d links are in common, want %d", got, len(a), len(b), tt.want)
			}
		})
	}
}

// An image counts with a weight of its own, and what only looks like one doesn't.
func TestPrompter_Weight(t *testing.T) {
	t.Parallel()
	weigh := func(content string) int {
		c := chainOf(t, `{"messages":[{"role":"user","content":[`+content+`]}]}`)
		return c.Weight(len(c))
	}
	const text = `{"type":"text","text":"a"}`
	image := `{"type":"image_url","image_url":{"url":"` + testkit.PNG(t, 300, 200) + `"}}`
	frame := len(`,{"type":"image_url","image_url":{"url":""}}`)
	if got, want := weigh(text+`,`+image+`,`+image), weigh(text)+2*(frame+1024); got != want {
		t.Errorf("two images weigh %d, want %d", got, want)
	}
	recording := `{"type":"input_audio","input_audio":{"data":"` + base64.StdEncoding.EncodeToString(testkit.WAV(16_000)) + `","format":"wav"}}`
	frames := frame + len(`,{"type":"input_audio","input_audio":{"data":"","format":"wav"}}`)
	for _, both := range []string{image + `,` + recording, recording + `,` + image} {
		if got, want := weigh(text+`,`+both), weigh(text)+frames+2*1024; got != want {
			t.Errorf("an image and a recording weigh %d, want %d", got, want)
		}
	}
	quoted := strings.ReplaceAll(image, `"`, `\"`)
	if got, want := weigh(`{"type":"text","text":"`+quoted+`"}`), weigh(`{"type":"text","text":""}`)+len(quoted); got != want {
		t.Errorf("a text about an image weighs %d, want %d", got, want)
	}
}

// BenchmarkPrompter measures the chain of a chat's prompt, and what else it takes to read the request: the ratio counts.
func BenchmarkPrompter(b *testing.B) {
	caps := capsOf(request.Caps{Vision: true})
	text := strings.Repeat(`The quick brown fox jumps over the lazy dog, \"twice\" \u2014 naïvely.\n`, 14)
	plain, parts := `{"role":"user","content":"`+text+`"}`, `{"role":"user","content":[{"type":"text","text":"`+text+`"}]}`
	image := `{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + testkit.PNG(b, 1000, 1000) + `"}}]}`
	for name, messages := range map[string]string{
		"1KiB": plain, "64KiB": strings.Repeat(plain+",", 63) + plain, "1MiB": strings.Repeat(plain+",", 1023) + plain,
		"1MiB in parts": strings.Repeat(parts+",", 1023) + parts, "image": image,
	} {
		raw := []byte(`{"model":"m","messages":[` + messages + `]}`)
		read := func() (*jsonbody.Body, *request.Chat) {
			body, bad := jsonbody.Scan(raw)
			if bad != nil {
				b.Fatal(bad)
			}
			chat, bad := openai.ParseChat(body, caps)
			if bad != nil {
				b.Fatal(bad)
			}
			return body, chat
		}
		b.Run(name+"/reading", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				body, chat := read()
				llamaserver.Wire{}.Chat(body, chat, 0)
			}
		})
		b.Run(name+"/chain", func(b *testing.B) {
			body, chat := read()
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				wire.AddChat(body, chat, prefix.New(0))
			}
		})
	}
}
