package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// randomRequests is the number of requests that TestRandomRequests makes.
const randomRequests = 2000

// TestRandomRequests sends requests from a grammar of valid and nearly valid bodies to every endpoint that uses a model. Each
// gets an answer in its dialect, none an internal error, and the engine isn't replaced. With -before, it compares two programs instead.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	if *before != "" {
		compareAnswers(t, *before, *requests)
		return
	}
	h := harness.NewHome(t)
	s := harness.Start(h, harness.Config{LM: []string{"allow raw_grammar"}})
	s.Chat(harness.Ask(capital))
	before := fmt.Sprint(s.Engines())
	var (
		workers sync.WaitGroup
		next    = make(chan int)
		mu      sync.Mutex
		counts  = map[int]int{}
	)
	for range 4 {
		workers.Go(func() {
			for i := range next {
				path, body := randomRequest(rand.New(rand.NewPCG(1, uint64(i))))
				got := <-s.Go(path, body)
				mu.Lock()
				counts[got.Status]++
				mu.Unlock()
				if got.Status >= 400 && testing.Verbose() {
					t.Logf("%s %d %.300s", path, got.Status, got.Body)
				}
				isAnswer := got.Status == 200 || got.Status >= 400 && got.Status < 500 && strings.Contains(got.Body, `"error"`)
				if !isAnswer {
					t.Errorf("request %d: %s %.2000s\n%d %.500s", i, path, body, got.Status, got.Body)
				}
			}
		})
	}
	for i := range randomRequests {
		next <- i
	}
	close(next)
	workers.Wait()
	if after := fmt.Sprint(s.Engines()); after != before {
		t.Errorf("the engines were %s, and are %s", before, after)
	}
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("after all of them: %q", a.Content)
	}
	if counts[200] < randomRequests/5 || counts[400] < randomRequests/5 {
		t.Errorf("too few are valid, or too many: %v", counts)
	}
	t.Logf("answers by status: %v", counts)
}

// random generates JSON.
type random struct{ *rand.Rand }

// pick returns one of texts.
func (r random) pick(texts ...string) string { return texts[r.IntN(len(texts))] }

// odd returns a value that few fields accept.
func (r random) odd() string {
	return r.pick(`null`, `""`, `[]`, `{}`, `0`, `-1`, `1e308`, `1e999`, `-0.0`, `9007199254740993`, `4294967296`, `2147483648`, `true`, `"null"`, `[null]`,
		`{"a":null}`, `"\u0000"`, `"é🎉\ud83c\udf89"`, `[[]]`, `0.1`, `["",""]`, `[1,"a"]`, `{"type":"x"}`, `"`+strings.Repeat("a", 2000)+`"`)
}

// text is a string.
func (r random) text() string {
	return r.pick(`"hi"`, `"What is the capital of France?"`, `""`, `" "`, `"\n"`, `"<think>"`, `"<|im_start|>system\n"`, `"\u0000"`, `"é🎉"`, `"<tool_call>{\"name\":"`,
		`"<__media__>"`, `"{{ messages }}"`, `"`+strings.Repeat(`a b `, 100)+`"`)
}

// field returns a field with one of the values, or sometimes an odd one.
func (r random) field(name string, values ...string) string {
	value := r.pick(values...)
	if r.IntN(40) == 0 {
		value = r.odd()
	}
	return `"` + name + `":` + value
}

func (r random) schema(depth int) string {
	if depth <= 0 || r.IntN(3) == 0 {
		return r.pick(`{"type":"string"}`, `{"type":"integer","minimum":-5,"maximum":70000}`, `{"enum":["a","b",1,null]}`, `{"const":"x"}`, `true`, `{}`, `{"type":["string","null"]}`,
			`{"type":"string","pattern":"^[a-z]{1,5}(-[a-z]+)*$"}`, `{"type":"string","pattern":"^(a*)*$"}`, `{"type":"string","pattern":"(["}`, `{"type":"string","format":"date-time"}`,
			`{"type":"string","minLength":3,"maxLength":2000000}`, `{"$ref":"#/$defs/x"}`, `{"type":"nonsense"}`, `{"enum":[]}`, `{"type":"number","multipleOf":0}`, `{"not":{}}`, `5`)
	}
	inner := func() string { return r.schema(depth - 1) }
	switch r.IntN(5) {
	case 0:
		return `{"type":"array","items":` + inner() + `,"minItems":` + r.pick("0", "2", "5000", "-1") + `,"maxItems":` + r.pick("1", "3", "100000") + `}`
	case 1:
		return `{"anyOf":[` + inner() + `,` + inner() + `]}`
	case 2:
		return `{"allOf":[` + inner() + `,` + inner() + `],"$defs":{"x":` + inner() + `}}`
	default:
		return `{"type":"object","properties":{"a":` + inner() + `,"b":` + inner() + `},"required":` + r.pick(`["a"]`, `[]`, `["z"]`, `"a"`, `null`) +
			`,"additionalProperties":` + r.pick(`false`, `true`, inner()) + `,"$defs":{"x":` + inner() + `}}`
	}
}

func (r random) parts() string {
	var parts []string
	for range r.IntN(3) {
		parts = append(parts, r.pick(`{"type":"text","text":`+r.text()+`}`, `{"type":"text"}`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`,
			`{"text":"a"}`, `"a"`, `{"type":"input_audio","input_audio":`+r.pick(`{"data":"AAAA","format":"wav"}`, `{"data":"","format":null}`, `null`)+`}`, `{"type":"refusal","refusal":"no"}`, `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`))
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func (r random) messages() string {
	var all []string
	for range 1 + r.IntN(4) {
		fields := []string{
			r.field("role", `"user"`, `"user"`, `"assistant"`, `"system"`, `"tool"`, `"developer"`, `"nobody"`),
			r.field("content", r.text(), r.text(), r.text(), r.parts(), "null"),
		}
		if r.IntN(4) == 0 {
			fields = append(fields, r.field("tool_calls", `[{"id":"a","type":"function","function":{"name":"f","arguments":`+r.pick(`"{}"`, `""`, `"{"`, `{"a":1}`, `"[[[[1]]]]"`, `null`)+`}}]`))
		}
		if r.IntN(4) == 0 {
			fields = append(fields, r.field("tool_call_id", `"a"`), r.field("name", `"n"`), r.field("reasoning_content", r.text()))
		}
		all = append(all, "{"+strings.Join(fields, ",")+"}")
	}
	return "[" + strings.Join(all, ",") + "]"
}

// sampling returns sampling fields.
func (r random) sampling() []string {
	all := []string{
		r.field("temperature", "0", "0.7", "1", "2", "100"), r.field("top_p", "0", "0.5", "1"), r.field("top_k", "-1", "0", "40", "2147483647"), r.field("min_p", "0", "0.05", "1"),
		r.field("typical_p", "0", "1"), r.field("top_n_sigma", "-1", "1"), r.field("repeat_penalty", "1", "1.1", "0", "100"), r.field("repeat_last_n", "-1", "0", "64", "2000000000"),
		r.field("presence_penalty", "-2", "0.5", "2"), r.field("frequency_penalty", "-2", "2"), r.field("dry_multiplier", "0", "0.8"), r.field("dry_base", "0", "1.75"),
		r.field("dry_allowed_length", "0", "2"), r.field("dry_penalty_last_n", "-1", "0", "2000000000"), r.field("dry_sequence_breakers", `["\n","*"]`, `[""]`, `[]`),
		r.field("xtc_probability", "0", "1"), r.field("xtc_threshold", "0", "0.5"), r.field("mirostat", "0", "1", "2"), r.field("mirostat_tau", "0", "5"), r.field("mirostat_eta", "0", "0.1"),
		r.field("samplers", `["top_k","temperature"]`, `[]`, `["nonsense"]`, `"kt"`), r.field("logit_bias", `{"5":-100}`, `{"99999999":1}`, `[[5,false]]`, `{"hello":3}`, `[[-1,1]]`),
		r.field("seed", "1", "-1", "4294967295"), r.field("stop", `["a"]`, `""`, `[""]`, `"\n"`, `[]`), r.field("ignore_eos", "true", "false"), r.field("n_probs", "0", "20"),
		r.field("dynatemp_range", "0", "1"), r.field("dynatemp_exponent", "0", "1"), r.field("adaptive_target", "-1", "0.5"), r.field("adaptive_decay", "0", "0.9"),
		r.field("x_unknown", `{"a":[1]}`), r.field("id_slot", "0", "99"), r.field("cache_prompt", "false"), r.field("n_keep", "-1"), r.field("user", `"u"`), r.field("ttl", "60", "-1"),
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:r.IntN(5)]
}

// randomRequest returns a path and a body.
func randomRequest(from *rand.Rand) (path, body string) {
	r := random{from}
	fields := []string{r.field("model", `"`+harness.Model+`"`, `"`+harness.Bare+`"`)}
	if r.IntN(3) == 0 {
		fields = append(fields, `"stream":true`)
	}
	limit := "max_tokens"
	switch r.IntN(7) {
	case 0, 1:
		path = r.pick(harness.ChatPath, "/api/v0/chat/completions")
		fields = append(fields, r.chat()...)
	case 2:
		path = r.pick("/v1/completions", "/api/v0/completions")
		fields = append(append(fields, r.field("prompt", r.text(), r.text(), `["a","b"]`, `[1,2,3]`, `[[1],[2]]`, `[99999999]`, `[0]`)), r.sampling()...)
		for _, f := range []string{r.field("n", "1", "2"), r.field("best_of", "2"), r.field("echo", "true"), r.field("logprobs", "0", "5", "20"), r.field("suffix", `"b"`)} {
			if r.IntN(4) == 0 {
				fields = append(fields, f)
			}
		}
	case 3, 4:
		path = r.pick("/v1/messages", "/v1/messages", "/v1/messages/count_tokens")
		fields = append(fields, r.anthropic()...)
	case 5:
		path, limit = "/api/v1/chat", "max_output_tokens"
		fields = append(fields, r.field("input", r.text(), `[{"type":"message","content":`+r.text()+`}]`, `[{"type":"image","data_url":"data:image/png;base64,AAAA"}]`),
			r.field("store", "false", "true"), r.field("reasoning", `"off"`, `"on"`, `"high"`), r.field("temperature", "0", "1"), r.field("system_prompt", r.text()))
	default:
		path = r.pick("/v1/embeddings", "/v1/rerank", "/api/v0/embeddings")
		fields = append(fields, r.field("input", `"a"`, `["a","b"]`, `[1]`), r.field("query", `"a"`), r.field("documents", `["a"]`))
	}
	body = "{" + strings.Join(fields, ",")
	if r.IntN(30) == 0 { // a byte that doesn't belong there
		at := r.IntN(len(body))
		body = body[:at] + r.pick(`"`, `,`, `\`, `{`, "\xff", "0") + body[at+1:]
	}
	return path, body + `,"` + limit + `":` + r.pick("1", "4", "8") + "}"
}

func (r random) chat() []string {
	fields := append(r.sampling(), `"messages":`+r.messages())
	for _, f := range []string{
		r.field("response_format", `{"type":"text"}`, `{"type":"json_object"}`, `{"type":"json_schema","json_schema":{"name":"a","schema":`+r.schema(3)+`}}`),
		`"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":` + r.schema(3) + `}}],` + r.field("tool_choice", `"auto"`, `"required"`, `"none"`, `{"type":"function","function":{"name":"f"}}`),
		r.field("logprobs", "true", "false"), `"logprobs":true,` + r.field("top_logprobs", "0", "20", "21"), r.field("n", "1", "3"),
		r.field("reasoning_effort", `"low"`, `"none"`, `"nonsense"`), r.field("chat_template_kwargs", `{"enable_thinking":false}`, `{"a":[1,{"b":2}]}`),
		r.field("grammar", `"root ::= \"a\""`, `"root ::= "`, `"("`), r.field("add_generation_prompt", "true", "false"), r.field("continue_final_message", "true"),
		r.field("reasoning_format", `"none"`, `"auto"`), r.field("thinking_budget_tokens", "0", "3"), r.field("parallel_tool_calls", "false"),
	} {
		if r.IntN(6) == 0 && !strings.Contains(strings.Join(fields, ","), f[:strings.Index(f, ":")+1]) {
			fields = append(fields, f)
		}
	}
	return fields
}

func (r random) anthropic() []string {
	block := func() string {
		return r.pick(`{"type":"text","text":`+r.text()+`}`, `{"type":"tool_use","id":"a","name":"f","input":{"a":1}}`, `{"type":"tool_result","tool_use_id":"a","content":`+r.text()+`}`,
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`, `{"type":"thinking","thinking":"t","signature":"s"}`, `{"type":"document","source":{"type":"text","data":"d"}}`)
	}
	var messages []string
	for i := range 1 + r.IntN(3) {
		role := []string{`"user"`, `"assistant"`}[i%2]
		messages = append(messages, "{"+r.field("role", role)+","+r.field("content", r.text(), "["+block()+"]", "["+block()+","+block()+"]")+"}")
	}
	fields := []string{`"messages":[` + strings.Join(messages, ",") + `]`}
	for _, f := range []string{
		r.field("system", r.text(), `[{"type":"text","text":"s"}]`), r.field("thinking", `{"type":"disabled"}`, `{"type":"adaptive"}`, `{"type":"enabled","budget_tokens":2}`),
		`"tools":[{"name":"f","input_schema":` + r.schema(3) + `}],` + r.field("tool_choice", `{"type":"auto"}`, `{"type":"any"}`, `{"type":"tool","name":"f"}`),
		r.field("stop_sequences", `["a"]`, `[""]`), r.field("temperature", "0", "1", "2"), r.field("top_k", "5"), r.field("metadata", `{"user_id":"u"}`),
		r.field("output_config", `{"format":{"type":"json_schema","schema":`+r.schema(3)+`}}`, `{"effort":"low"}`),
	} {
		if r.IntN(4) == 0 {
			fields = append(fields, f)
		}
	}
	return fields
}

// TestRandomRequests_AreTheSameEachTime: a request that failed can be reproduced.
func TestRandomRequests_AreTheSameEachTime(t *testing.T) {
	valid := 0
	for i := range 100 {
		path, body := randomRequest(rand.New(rand.NewPCG(1, uint64(i))))
		otherPath, other := randomRequest(rand.New(rand.NewPCG(1, uint64(i))))
		if path != otherPath || body != other {
			t.Fatalf("request %d differs: %s and %s", i, body, other)
		}
		if json.Valid([]byte(body)) {
			valid++
		}
	}
	if valid < 80 {
		t.Errorf("%d of 100 are JSON", valid)
	}
}
