package api

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

var ollamaVolatile = regexp.MustCompile(`("created_at":")[^"]*|("(?:total|load|prompt_eval|eval)_duration":)[0-9]+`)

// TestGolden_Ollama keeps a request, what its engine is sent, and the answer, for what a request for text can ask for.
func TestGolden_Ollama(t *testing.T) {
	t.Parallel()
	weather := []fakeengine.ToolCall{{Name: "get_weather", Arguments: `{"city":"Oslo"}`, ID: "a"}, {Name: "get_weather", Arguments: `{"city":"Paris"}`, ID: "b"}}
	s := serve(t, &fakeengine.Script{Infill: true, Rules: []fakeengine.Rule{
		{Contains: "Weather", PromptTokens: 20, Answer: fakeengine.Answer{Reasoning: "I look.", Pieces: []string{"Let me see."}, Calls: weather}, AfterTools: []fakeengine.Answer{{Text: "It rains."}}},
		{Contains: "Long", PromptTokens: 4000},
		{Contains: "Broken", PromptTokens: 9, Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Fault}}},
		{PromptTokens: 9, CachedTokens: 4, Answer: fakeengine.Answer{Reasoning: "A greeting.", Text: "Hello there."}},
	}}, shortContext, withPresets, withoutStates)
	const chat, generate, whole = "/api/chat", "/api/generate", `,"stream":false`
	const tools = `,"tools":[{"type":"function","function":{"name":"get_weather","description":"Tells","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":null}}}]`
	const result = `"messages":[{"role":"User","content":"Weather"},{"role":"assistant","content":"","thinking":"I look.","tool_calls":[{"function":{"index":0,"name":"get_weather","arguments":{"city":"Oslo"}}},{"function":{"name":"other","arguments":null}}]},` +
		`{"role":"tool","content":"sun","tool_name":"other"},{"role":"tool","content":"rain","tool_name":"get_weather"}]`
	says := func(text string) string { return `"messages":[{"role":"user","content":"` + text + `"}]` }
	for _, tt := range []struct{ name, path, request string }{
		{"chat", chat, says("Hello") + whole},
		{"chat-stream", chat, says("Hello")},
		{"chat-options", chat, says("Hello") + whole + `,"options":{"temperature":0.5,"top_k":40,"top_p":0.9,"min_p":0.05,"typical_p":0.7,"repeat_last_n":-1,"repeat_penalty":1.1,` +
			`"presence_penalty":0,"frequency_penalty":0.5,"mirostat":1,"mirostat_tau":0.8,"mirostat_eta":0.6,"seed":42,"num_predict":100.0,"stop":["there"],` +
			`"num_keep":5,"num_ctx":2048,"num_batch":2,"num_gpu":1,"main_gpu":0,"use_mmap":true,"num_thread":8,"numa":false,"penalize_newline":true,"unheard_of":[1]}`},
		{"chat-defaults", chat, says("Hello") + whole + `,"options":{"num_predict":-1,"seed":-1,"temperature":null},"format":"","keep_alive":"5m","think":null,"tools":[],"truncate":true`},
		{"chat-stop-stream", chat, says("Hello") + `,"options":{"stop":"there"}`},
		{"chat-limit-stream", chat, says("Hello") + `,"options":{"num_predict":1}`},
		{"chat-json", chat, says("Hello") + whole + `,"format":"json"`},
		{"chat-schema", chat, says("Hello") + whole + `,"format":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`},
		{"chat-think", chat, says("Hello") + whole + `,"think":true`},
		{"chat-think-level", chat, says("Hello") + whole + `,"think":"high"`},
		{"chat-think-not", chat, says("Hello") + whole + `,"think":false`},
		{"chat-logprobs-stream", chat, says("Hello") + `,"logprobs":true,"top_logprobs":1`},
		{"chat-logprobs", chat, says("Hello") + whole + `,"logprobs":true`},
		{"chat-preset", chat, says("Hello") + whole + `,"preset":"careful","options":{"top_k":3}`},
		{"chat-tools", chat, says("Weather") + whole + tools},
		{"chat-tools-stream", chat, says("Weather") + tools},
		{"chat-tools-cut-stream", chat, says("Weather") + tools + `,"options":{"num_predict":3}`},
		{"chat-tools-result", chat, result + whole + tools},
		{"chat-overflow", chat, says("Long")},
		{"chat-broken-stream", chat, says("Broken")},
		{"chat-broken", chat, says("Broken") + whole},
		{"chat-load", chat, `"messages":[]` + whole},
		{"chat-image", chat, `"messages":[{"role":"user","content":"Look","images":["aGk="]}]`},
		{"generate", generate, `"prompt":"Hello","system":"Be brief."` + whole},
		{"generate-stream", generate, `"prompt":"Hello"`},
		{"generate-raw", generate, `"prompt":"Hello","raw":true,"options":{"num_predict":7,"stop":["x"],"seed":3,"top_k":5,"typical_p":0.5}` + whole},
		{"generate-suffix-stream", generate, `"prompt":"def f(","suffix":"return 1"`},
		{"generate-load", generate, `"model":"tinychat"`},
		{"generate-context", generate, `"prompt":"Hello","context":[1,2,3]`},
		{"generate-template", generate, `"prompt":"Hello","template":"{{ .Prompt }}"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(s.sent())
			request := `{"model":"tinychat:latest",` + strings.TrimPrefix(tt.request, `"model":"tinychat"`) + `}`
			request = strings.Replace(request, ",}", "}", 1)
			got := s.do("POST", tt.path, request)
			var text strings.Builder
			fmt.Fprintf(&text, "POST %s\n%s\n\n", tt.path, request)
			for _, body := range s.sent()[before:] {
				fmt.Fprintf(&text, "sent: %s\n\n", body)
			}
			fmt.Fprintf(&text, "%d %s\n%s\n", got.status, got.header.Get("Content-Type"), ollamaVolatile.ReplaceAllString(got.body, "${1}${2}…"))
			golden(t, "ollama-"+tt.name, text.String())
		})
	}
}

// TestOllama_RefusesWhatIsWrong: bad input gets an error that names it, and nothing is loaded.
func TestOllama_RefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	link(t, "../testdata/models/lmcaddy/tinyembed/tinyembed-f16.gguf", s.node.Home().Models()+"/lmcaddy/tinyembed/tinyembed-f16.gguf")
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	for _, tt := range []struct {
		path, more string
		status     int
		want       string
	}{
		{"/api/chat", `"model":null,` + hi, 400, "model"},
		{"/api/chat", `"model":"",` + hi, 400, "model"},
		{"/api/chat", `"model":"nope",` + hi, 404, `model \"nope\" not found, try pulling it first`},
		{"/api/chat", `"model":"tinychat","model":"x",` + hi, 400, "given twice"},
		{"/api/chat", `"model":"tinychat","options":{"seed":1,"seed":2},` + hi, 400, "seed"},
		{"/api/chat", `"model":"tinychat","messages":{}`, 400, "messages"},
		{"/api/chat", `"model":"tinychat","messages":[1]`, 400, "messages[0]"},
		{"/api/chat", `"model":"tinychat","messages":[{"role":null}]`, 400, "messages[0].role"},
		{"/api/chat", `"model":"tinychat","messages":[{"role":"robot","content":"x"}]`, 400, "messages[0].role"},
		{"/api/chat", `"model":"tinychat","messages":[{"role":"user","content":[{"type":"text"}]}]`, 400, "messages[0].content"},
		{"/api/chat", `"model":"tinychat","messages":[{"role":"user","content":"x","images":"aGk="}]`, 400, "messages[0].images"},
		{"/api/chat", `"model":"tinychat","messages":[{"role":"assistant","content":"x","tool_calls":[{"function":{}}]}]`, 400, "messages[0].tool_calls[0].function.name"},
		{"/api/chat", `"model":"tinychat","messages":[{"role":"assistant","content":"x"},{"role":"assistant","content":"y"}]`, 400, "last two"},
		{"/api/chat", `"model":"tinychat","stream":"no",` + hi, 400, "stream"},
		{"/api/chat", `"model":"tinychat","options":[],` + hi, 400, "options"},
		{"/api/chat", `"model":"tinychat","options":{"temperature":"hot"},` + hi, 400, "options.temperature"},
		{"/api/chat", `"model":"tinychat","options":{"temperature":1e999},` + hi, 400, "options.temperature"},
		{"/api/chat", `"model":"tinychat","options":{"top_k":1.5},` + hi, 400, "options.top_k"},
		{"/api/chat", `"model":"tinychat","options":{"mirostat":9},` + hi, 400, "options.mirostat"},
		{"/api/chat", `"model":"tinychat","options":{"num_predict":1e300},` + hi, 400, "options.num_predict"},
		{"/api/chat", `"model":"tinychat","options":{"num_ctx":99999999999},` + hi, 400, "options.num_ctx"},
		{"/api/chat", `"model":"tinychat","options":{"num_gpu":"all"},` + hi, 400, "options.num_gpu"},
		{"/api/chat", `"model":"tinychat","options":{"stop":[1]},` + hi, 400, "options.stop"},
		{"/api/chat", `"model":"tinychat","format":"yaml",` + hi, 400, "format"},
		{"/api/chat", `"model":"tinychat","format":["json"],` + hi, 400, "format"},
		{"/api/chat", `"model":"tinychat","think":"hard",` + hi, 400, "think"},
		{"/api/chat", `"model":"tinychat","think":1,` + hi, 400, "think"},
		{"/api/chat", `"model":"tinychat","keep_alive":"soon",` + hi, 400, "keep_alive"},
		{"/api/chat", `"model":"tinychat","keep_alive":[],` + hi, 400, "keep_alive"},
		{"/api/chat", `"model":"tinychat","top_logprobs":21,` + hi, 400, "top_logprobs must be between 0 and 20"},
		{"/api/chat", `"model":"tinychat","tools":{},` + hi, 400, "tools"},
		{"/api/chat", `"model":"tinychat","tools":[{"type":"function"}],` + hi, 400, "tools[0].function"},
		{"/api/chat", `"model":"tinychat","tools":[{"type":"function","function":{"name":"f","parameters":"x"}}],` + hi, 400, "tools[0].function.parameters"},
		{"/api/chat", `"model":"lmcaddy/tinyembed",` + hi, 400, `\"lmcaddy/tinyembed\" does not support chat`},
		{"/api/generate", `"model":"lmcaddy/tinyembed","prompt":"x"`, 400, `\"lmcaddy/tinyembed\" does not support generate`},
		{"/api/generate", `"model":"tinychat","prompt":["x"]`, 400, "prompt"},
		{"/api/generate", `"model":"tinychat","prompt":"x","raw":true,"system":"y"`, 400, "raw mode does not support"},
		{"/api/generate", `"model":"tinychat","prompt":"x","raw":true,"format":"json"`, 400, "format"},
		{"/api/generate", `"model":"tinychat","prompt":"x","_debug_render_only":true`, 400, "_debug_render_only"},
	} {
		got := s.do("POST", tt.path, "{"+tt.more+"}")
		message := gjson.Get(got.body, "error")
		if got.status != tt.status || message.Type != gjson.String || !strings.Contains(message.Raw, tt.want) || strings.Count(got.body, `"error"`) != 1 {
			t.Errorf("%s {%s}: %d %s, want %d with %s", tt.path, tt.more, got.status, got.body, tt.status, tt.want)
		}
	}
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakeengine.Started {
			t.Error("a bad request has loaded a model")
		}
	}
}

// instance is what the native API says of the only instance; the zero value: there is none.
func (s *server) instance() gjson.Result {
	s.t.Helper()
	return gjson.Get(s.do("GET", "/api/v1/ps", "").body, "instances.0")
}

func TestOllama_KeepAlive(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, tt := range []struct {
		value string
		ttl   float64
	}{
		{`"90s"`, 90}, {`30`, 30}, {`-1`, 0}, {`"5m"`, 300}, {`"-1s"`, 0}, {`1.5`, 1.5}, {`null`, 1.5}, {`1e300`, 1e9},
	} {
		got := s.do("POST", "/api/chat", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}],"keep_alive":`+tt.value+`}`)
		if ttl := s.instance().Get("ttl_seconds").Num; got.status != 200 || ttl != tt.ttl {
			t.Errorf("%s: %d, it stays for %v s, want %v", tt.value, got.status, ttl, tt.ttl)
		}
	}
	for _, path := range []string{"/api/chat", "/api/generate"} {
		expect(t, s.do("POST", path, `{"model":"tinychat","keep_alive":77}`), 200, map[string]string{"done_reason": "load", "done": "true"})
		if ttl := s.instance().Get("ttl_seconds").Num; ttl != 77 {
			t.Errorf("%s: it stays for %v s", path, ttl)
		}
		expect(t, s.do("POST", path, `{"model":"tinychat","keep_alive":0,"stream":false}`), 200, map[string]string{"done_reason": "unload", "done": "true"})
		if in := s.instance(); in.Exists() {
			t.Errorf("%s: it is still loaded: %s", path, in.Raw)
		}
	}
	starts := func() (n int) {
		for _, ev := range s.fake.Events() {
			if ev.Kind == fakeengine.Started {
				n++
			}
		}
		return n
	}
	before := starts()
	expect(t, s.do("POST", "/api/generate", `{"model":"tinychat","prompt":"hi","keep_alive":0,"stream":false}`), 200, map[string]string{"done_reason": "stop"})
	testkit.Eventually(t, "it is unloaded", func() bool { return !s.instance().Exists() })
	if starts() != before+1 {
		t.Errorf("it was started %d times", starts()-before)
	}
}

// TestOllama_KeepAliveOfOthersModels: what was loaded by hand stays, and so does what another token has loaded.
func TestOllama_KeepAliveOfOthersModels(t *testing.T) {
	t.Parallel()
	const hi = `{"model":"tinychat","messages":[{"role":"user","content":"hi"}],"keep_alive":`
	s := serve(t, nil)
	if got := s.do("POST", "/api/v1/models/load", `{"model":"tinychat"}`); got.status != 200 {
		t.Fatal(got.body)
	}
	if got := s.do("POST", "/api/chat", hi+`"1s"}`); got.status != 200 || s.instance().Get("ttl_seconds").Num != 0 {
		t.Errorf("%s %s", got.body, s.instance().Raw)
	}
	if got := s.do("POST", "/api/chat", `{"model":"tinychat","keep_alive":0}`); got.status != 200 || s.instance().Exists() {
		t.Errorf("%s %s", got.body, s.instance().Raw)
	}
	s = guarded(serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { settings.IdleTTL = 100e9 }))
	admin, _ := s.token(access.Token{Scopes: access.Scopes})
	mine, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeInference}})
	others, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeInference}})
	for _, tt := range []struct {
		secret, value string
		want          float64
	}{
		{mine, `20`, 20}, {mine, `-1`, 100}, {others, `10`, 100}, {others, `"0s"`, 100}, {mine, `5000`, 100}, {admin, `5000`, 5000}, {admin, `-1`, 0},
	} {
		got := s.with(tt.secret, "POST", "/api/chat", hi+tt.value+`}`)
		if ttl := gjson.Get(s.with(admin, "GET", "/api/v1/ps", "").body, "instances.0.ttl_seconds").Num; got.status != 200 || ttl != tt.want {
			t.Errorf("%s: %d, it stays for %v s, want %v", tt.value, got.status, ttl, tt.want)
		}
	}
	if got := s.with(others, "POST", "/api/chat", `{"model":"tinychat","keep_alive":0}`); got.status != 403 {
		t.Errorf("another token unloads it: %d %s", got.status, got.body)
	}
	if got := s.with(mine, "POST", "/api/chat", `{"model":"tinychat","keep_alive":0}`); got.status != 200 {
		t.Errorf("its own token doesn't unload it: %d %s", got.status, got.body)
	}
}

// TestOllamaGenerate_Remembers: a request with the context of an answer continues the conversation.
func TestOllamaGenerate_Remembers(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Reasoning: "A greeting.", Text: "Hello Ada."}}}}, withPresets)
	ask := func(more string) (context string) {
		t.Helper()
		got := s.do("POST", "/api/generate", `{"model":"tinychat",`+more+`}`)
		lines := strings.Split(strings.TrimSpace(got.body), "\n")
		if got.status != 200 || strings.Count(got.body, `"context"`) > 1 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		return gjson.Get(lines[len(lines)-1], "context").Raw
	}
	first := ask(`"prompt":"I am Ada.","system":"Be short."`)
	second := ask(`"stream":false,"prompt":"Who?","preset":"careful","context":` + first)
	third := ask(`"prompt":"Why?","system":"Be kind.","context":` + second)
	want := `[{"role":"system","content":"Be kind."},{"role":"user","content":"I am Ada."},{"role":"assistant","content":"Hello Ada."},{"role":"user","content":"Who?"},` +
		`{"role":"assistant","content":"Hello Ada."},{"role":"user","content":"Why?"}]`
	sent := s.sent()
	if got := gjson.Get(sent[len(sent)-1], "messages").Raw; got != want {
		t.Errorf("the engine is sent\n%s, want\n%s", got, want)
	}
	if got := gjson.Get(sent[len(sent)-2], "messages.0.content").Str; got != "Be short." {
		t.Errorf("the conversation that began with its own system prompt gets %q", got)
	}
	if ask(`"prompt":"And?","context":` + third); len(s.sent()) != 4 {
		t.Errorf("%d requests", len(s.sent()))
	}
	if got := ask(`"prompt":"a","raw":true`) + ask(`"prompt":""`); got != "" {
		t.Errorf("there is a context: %s", got)
	}
}
