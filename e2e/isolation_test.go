package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// attack is a request that would harm the engine, the machine or another user if the engine received it unchanged.
type attack struct {
	name, path string // the path; empty: harness.ChatPath
	fields     string // of the body, besides the model and, for chats, a short limit
	status     int
	says       string // in the answer
}

const (
	userHi = `"messages":[{"role":"user","content":"hi"}]`
)

func schemaOf(schema string) string {
	return userHi + `,"response_format":{"type":"json_schema","json_schema":{"schema":` + schema + `}}`
}

func partsOf(parts string) string {
	return `"messages":[{"role":"user","content":[` + parts + `]}]`
}

// attacks are requests by the name of the rule that each would break. URL stands for a listener on this machine that must get
// no request.
func attacks(url string) []attack {
	many := func(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	doubled := `{"$ref":"#/$defs/d0","$defs":{`
	for i := range 40 {
		doubled += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubled += `"d40":{"type":"string"}}}`
	nested := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	keys := make([]string, 40_000)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"k%d":{"a":1}`, i)
	}
	return []attack{
		// fields of the engine
		{"another's slot", "", userHi + `,"id_slot":0,"cache_prompt":true,"n_keep":-1,"n_discard":5`, 200, ""},
		{"many choices in the engine", "", userHi + `,"n_cmpl":1000`, 200, ""},
		{"a grammar's triggers", "", userHi + `,"grammar_lazy":true,"grammar_triggers":[{"type":9,"value":"x"}]`, 200, ""},
		{"an adapter", "", userHi + `,"lora":[{"id":0,"scale":1e30}]`, 200, ""},
		{"much metadata", "", userHi + `,"metadata":{` + strings.Join(keys, ",") + `}`, 200, ""},
		{"a huge window", "", userHi + `,"repeat_last_n":2000000000,"dry_multiplier":1,"dry_penalty_last_n":2000000000`, 200, ""},
		{"many probabilities", "", userHi + `,"logprobs":true,"top_logprobs":765`, 400, "0 to 20"},
		{"a raw grammar", "", userHi + `,"grammar":"root ::= (\"a\"?){1000}"`, 403, "raw_grammar"},
		{"a raw grammar of a text", "/v1/completions", `"prompt":"a","grammar":"root ::= (\"a\"?){1000}"`, 403, "raw_grammar"},
		{"many breakers", "", userHi + `,"dry_sequence_breakers":[` + many(500, `"a"`) + `]`, 400, "dry_sequence_breakers"},
		{"a seed of 64 bits", "", userHi + `,"seed":9007199254740991`, 200, ""},
		{"a limit of 64 bits", "", `"messages":[{"role":"user","content":"What is the capital of France?"}],"max_completion_tokens":9007199254740991`, 200, ""},
		{"token ids of no vocabulary", "/v1/completions", `"prompt":[99999999]`, 400, ""},
		{"token ids beyond 32 bits", "/v1/completions", `"prompt":[4294967297]`, 400, ""},
		{"a template's own variables", "", userHi + `,"chat_template_kwargs":{"messages":[],"tools":[]}`, 400, "chat_template_kwargs"},

		// messages
		{"a video", "", partsOf(`{"type":"video_url","video_url":{"url":"` + url + `"}}`), 400, "unsupported_content"},
		{"another video", "", partsOf(`{"type":"input_video","input_video":{"url":"` + url + `"}}`), 400, "unsupported_content"},
		{"an escaped type", "", partsOf(`{"type":"image\u005furl","image_url":{"url":"` + url + `"}}`), 400, "invalid_image_url"},
		{"an escaped name", "", partsOf(`{"typ\u0065":"image_url","image_url":{"url":"` + url + `"}}`), 400, "invalid_image_url"},
		{"two types", "", partsOf(`{"type":"text","text":"a","type":"image_url","image_url":{"url":"` + url + `"}}`), 400, "duplicate_field"},
		{"two URLs", "", partsOf(`{"type":"image_url","image_url":{"url":"data:,","url":"` + url + `"}}`), 400, "duplicate_field"},
		{"a URL alone", "", partsOf(`{"type":"image_url","image_url":"` + url + `"}`), 400, "invalid_image_url"},
		{"bytes that are no image", "", partsOf(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAAIGZ0eXBpc29tAAACAGlzb21pc28yYXZjMW1wNDE="}}`), 400, "image"},
		{"a file", "", partsOf(`{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}`), 400, "invalid_image_url"},
		{"an image of a Messages request", "/v1/messages", partsOf(`{"type":"image","source":{"type":"url","url":"` + url + `"}}`), 400, ""},
		{"deep arguments", "", `"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"a","arguments":"` + nested + `"}}]},{"role":"tool","tool_call_id":"a","content":"b"}]`, 400, "nested"},
		{"arguments that are no JSON", "", `"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"a","arguments":"{\"b\":"}}]},{"role":"tool","tool_call_id":"a","content":"b"}]`, 200, ""},
		{"a message of no role", "", `"messages":[{"content":"a"}]`, 400, "role"},
		{"half a surrogate pair", "", `"messages":[{"role":"user","content":"\ud800"}]`, 400, "surrogate"},

		// schemas
		{"a pattern that stalls", "", schemaOf(`{"type":"string","pattern":"^(a?){1000}$"}`), 400, "pattern"},
		{"a pattern that stalls, of a tool", "", userHi + `,"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"type":"string","pattern":"^(a?){1000}$"}}}}}],"tool_choice":"required"`, 400, "pattern"},
		{"a pattern that stalls, of a Messages tool", "/v1/messages", userHi + `,"tools":[{"name":"a","input_schema":{"type":"object","properties":{"x":{"type":"string","pattern":"^(a?){1000}$"}}}}],"tool_choice":{"type":"any"}`, 400, "pattern"},
		{"a pattern that stalls, of a Messages format", "/v1/messages", userHi + `,"output_config":{"format":{"type":"json_schema","schema":{"type":"string","pattern":"^(a?){1000}$"}}}`, 400, "pattern"},
		{"references that double", "", schemaOf(doubled), 200, ""},
		{"many members", "", schemaOf(`{"enum":[` + many(100_000, `"a"`) + `]}`), 400, "values"},
		{"a deep schema", "", schemaOf(strings.Repeat(`{"items":`, 200) + `{}` + strings.Repeat(`}`, 200)), 400, "levels"},
		{"many properties", "", schemaOf(`{"type":"object","properties":{` + strings.Join(keys[:2000], ",") + `}}`), 400, "properties"},
		{"another document's schema", "", schemaOf(`{"$ref":"` + url + `"}`), 400, "not fetched"},
	}
}

// TestIsolation sends each attack while another user's request is running, and one more after it. The others are answered,
// the engine isn't replaced, and nothing was downloaded.
func TestIsolation(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int32
	listener := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetched.Add(1) }))
	defer listener.Close()
	for _, model := range []string{harness.Model, visionModel} {
		t.Run(model, func(t *testing.T) {
			s := harness.Start(withVision(t), harness.Config{})
			s.Post(harness.LoadPath, harness.Fields{"model": model}).Want(t, http.StatusOK)
			before := fmt.Sprint(s.Engines())
			for _, a := range attacks(listener.URL + "/image.png") {
				t.Run(a.name, func(t *testing.T) { tryAttack(t, s.In(t), model, a) })
			}
			if after := fmt.Sprint(s.Engines()); after != before {
				t.Errorf("the engines were %s, and are %s", before, after)
			}
		})
	}
	if n := fetched.Load(); n > 0 {
		t.Errorf("an engine fetched %d times what a request named", n)
	}
}

func tryAttack(t *testing.T, s *harness.Server, model string, a attack) {
	path := a.path
	if path == "" {
		path = harness.ChatPath
	}
	other := harness.Ask(capital).With("model", model).With("max_tokens", 40)
	beside := s.Go(harness.ChatPath, other)
	more := ""
	if !strings.Contains(a.fields, "max_completion_tokens") {
		more = `,"max_tokens":8`
	}
	got := s.Post(path, `{"model":"`+model+`",`+a.fields+more+`}`)
	isBlind := model == harness.Model && got.Status == 400 && strings.Contains(got.Body, "vision") // it was refused earlier
	if !isBlind && (got.Status != a.status || !strings.Contains(got.Body, a.says)) {
		t.Errorf("status %d, want %d and %q: %.500s", got.Status, a.status, a.says, got.Body)
	}
	(<-beside).Want(t, http.StatusOK)
	s.Post(harness.ChatPath, other).Want(t, http.StatusOK)
}
