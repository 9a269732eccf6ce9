package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
)

// fieldsFile is made by this test with -update, from what happens to requests with each field.
const fieldsFile = "../docs/api/fields.md"

const fieldsIntro = `# Fields of requests

What happens to each field that a client may send. A test makes this page (` + "`make reference`" + `): it sends a request with the field to a server with
a fake engine, and compares what the engine and the client get with what they get without the field.

| word | meaning |
|---|---|
| engine | the engine gets it, or something that is made from it |
| lmcaddy | lmcaddy reads it: it changes the answer or how the model is loaded, and a wrong value is refused |
| ignored | it has no effect, whatever its value; it isn't refused, because clients send it |
| refused | a request with it gets an error with that code |

The last column has the code of the error for a value of a wrong type; errors of Ollama's API have only a status.
It refuses some values of a wrong type even of fields that it ignores. A field that isn't listed is ignored. ` + "`null`" + ` means that a field is absent.
` + "`store` and `cache_prompt`" + ` also decide whether a [state](../operation.md#warm-conversations) of the prompt is saved, which no answer shows.
`

// family is an endpoint with the fields that its clients send.
type family struct {
	title, page, path, base string
	fields                  []field
}

// field is a field with a value that is right, and one that is wrong.
type field struct{ name, right, wrong string }

// with is the field with a value, as JSON. A name may be that of a member of an object: "options.seed".
func (f *field) with(value string) string {
	if object, member, ok := strings.Cut(f.name, "."); ok {
		return `"` + object + `":{"` + member + `":` + value + "}"
	}
	return `"` + f.name + `":` + value
}

const (
	aTool    = `[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`
	anObject = `{"type":"object","properties":{}}`
)

// samplingFields are the fields that control the sampling, with values that differ from the defaults.
var samplingFields = []field{
	{"temperature", "0.3", `"x"`},
	{"top_p", "0.5", `"x"`},
	{"top_k", "7", `"x"`},
	{"min_p", "0.2", `"x"`},
	{"typical_p", "0.5", `"x"`},
	{"repeat_penalty", "1.2", `"x"`},
	{"presence_penalty", "0.5", `"x"`},
	{"frequency_penalty", "0.5", `"x"`},
	{"seed", "7", `"x"`},
	{"logit_bias", `{"5":1}`, `"x"`},
	{"stop", `["zebra"]`, "1"},
	{"repetition_penalty", "1.2", `"x"`},
	{"repeat_last_n", "32", `"x"`},
	{"top_n_sigma", "1", `"x"`},
	{"xtc_probability", "0.5", `"x"`},
	{"xtc_threshold", "0.2", `"x"`},
	{"n_indent", "4", `"x"`},
	{"t_max_predict_ms", "1000", `"x"`},
	{"dynatemp_range", "0.5", `"x"`},
	{"dynatemp_exponent", "2", `"x"`},
	{"mirostat", "1", `"x"`},
	{"mirostat_tau", "4", `"x"`},
	{"mirostat_eta", "0.2", `"x"`},
	{"dry_multiplier", "0.5", `"x"`},
	{"dry_base", "2", `"x"`},
	{"dry_allowed_length", "3", `"x"`},
	{"dry_penalty_last_n", "32", `"x"`},
	{"dry_sequence_breakers", `["."]`, `"x"`},
	{"adaptive_target", "0.5", `"x"`},
	{"adaptive_decay", "0.5", `"x"`},
	{"samplers", `["top_k"]`, "1"},
	{"ignore_eos", "true", `"x"`},
}

// ourFields are those of lmcaddy itself.
var ourFields = []field{{"ttl", "600", `"x"`}, {"draft_model", `"lmcaddy/nowhere"`, "1"}, {"preset", `"nowhere"`, "1"}, {"cache_prompt", "false", `"x"`}}

var families = []family{
	{
		"Chat completions", "openai.md#chat", "/v1/chat/completions", `"model":"tinychat","messages":[{"role":"user","content":"hi"}]`,
		slices.Concat([]field{
			{"stream", "true", `"x"`},
			{"stream_options", `{"include_usage":true}`, "1"},
			{"max_tokens", "5", `"x"`},
			{"max_completion_tokens", "5", `"x"`},
			{"n_predict", "5", `"x"`},
			{"n", "2", `"x"`},
			{"tools", aTool, "1"},
			{"tool_choice", `"none"`, "1"},
			{"parallel_tool_calls", "false", "1"},
			{"response_format", `{"type":"json_object"}`, "1"},
			{"logprobs", "true", `"x"`},
			{"top_logprobs", "2", `"x"`},
			{"reasoning_effort", `"low"`, "1"},
			{"chat_template_kwargs", `{"a":1}`, "1"},
			{"add_generation_prompt", "true", `"x"`},
			{"continue_final_message", "false", `"x"`},
			{"timings_per_token", "true", `"x"`},
			{"return_progress", "true", `"x"`},
			{"grammar", `"root ::= \"a\""`, "1"},
			{"thinking_budget_tokens", "10", `"x"`},
			{"store", "false", `"x"`},
			{"audio", `{"voice":"alloy","format":"wav"}`, "1"},
			{"function_call", `"auto"`, "1"},
			{"functions", "[]", "1"},
			{"metadata", `{"a":"b"}`, "1"},
			{"modalities", `["text"]`, "1"},
			{"moderation", `{}`, "1"},
			{"prediction", `{"type":"content","content":"a"}`, "1"},
			{"prompt_cache_key", `"a"`, "1"},
			{"prompt_cache_retention", `"24h"`, "1"},
			{"safety_identifier", `"a"`, "1"},
			{"service_tier", `"auto"`, "1"},
			{"user", `"a"`, "1"},
			{"verbosity", `"low"`, "1"},
			{"web_search_options", "{}", "1"},
		}, samplingFields, ourFields),
	},
	{
		"Text completions", "openai.md#completions", "/v1/completions", `"model":"tinychat","prompt":"hi"`,
		slices.Concat([]field{
			{"stream", "true", `"x"`},
			{"stream_options", `{"include_usage":true}`, "1"},
			{"max_tokens", "5", `"x"`},
			{"n", "2", `"x"`},
			{"best_of", "2", `"x"`},
			{"echo", "true", `"x"`},
			{"suffix", `"a"`, "1"},
			{"logprobs", "1", `"x"`},
			{"response_format", `{"type":"text"}`, "1"},
			{"user", `"a"`, "1"},
		}, samplingFields, ourFields),
	},
	{
		"Responses", "responses.md", "/v1/responses", `"model":"tinychat","input":"hi"`,
		slices.Concat([]field{
			{"instructions", `"Be brief."`, "1"},
			{"stream", "true", `"x"`},
			{"store", "false", `"x"`},
			{"previous_response_id", `"resp_nowhere"`, "1"},
			{"max_output_tokens", "5", `"x"`},
			{"max_tool_calls", "1", `"x"`},
			{"tools", `[{"type":"function","name":"f","parameters":` + anObject + `}]`, "1"},
			{"tool_choice", `"none"`, "1"},
			{"parallel_tool_calls", "false", `"x"`},
			{"reasoning", `{"effort":"low"}`, "1"},
			{"text", `{"format":{"type":"json_object"}}`, "1"},
			{"include", `["message.output_text.logprobs"]`, "1"},
			{"top_logprobs", "2", `"x"`},
			{"metadata", `{"a":"b"}`, "1"},
			{"truncation", `"auto"`, "1"},
			{"service_tier", `"auto"`, "1"},
			{"safety_identifier", `"a"`, "1"},
			{"prompt_cache_key", `"a"`, "1"},
			{"user", `"a"`, "1"},
			{"conversation", `"conv_1"`, "1"},
			{"prompt", `{"id":"p"}`, "1"},
			{"stream_options", `{"include_obfuscation":false}`, "1"},
			{"client_metadata", `{}`, "1"},
			{"context_management", `[]`, "1"},
			{"moderation", `{}`, "1"},
			{"prompt_cache_retention", `"24h"`, "1"},
			{"background", "true", `"x"`},
		}, samplingFields[:11], ourFields),
	},
	{
		"Messages", "anthropic.md", "/v1/messages", `"model":"tinychat","max_tokens":20,"messages":[{"role":"user","content":"hi"}]`,
		slices.Concat([]field{
			{"system", `"Be brief."`, "1"},
			{"stream", "true", `"x"`},
			{"stop_sequences", `["zebra"]`, "1"},
			{"tools", `[{"name":"f","input_schema":` + anObject + `}]`, "1"},
			{"tool_choice", `{"type":"none"}`, "1"},
			{"thinking", `{"type":"disabled"}`, "1"},
			{"output_config", `{"format":{"type":"json_schema","schema":` + anObject + `}}`, "1"},
			{"metadata", `{"user_id":"a"}`, "1"},
			{"service_tier", `"auto"`, "1"},
			{"cache_control", `{"type":"ephemeral"}`, "1"},
			{"container", `"a"`, "1"},
			{"context_management", "{}", "1"},
			{"inference_geo", `"us"`, "1"},
			{"mcp_servers", "[]", "1"},
			{"speed", `"fast"`, "1"},
		}, samplingFields[:9], ourFields),
	},
	{
		"Native chat", "native.md#native-chat", "/api/v1/chat", `"model":"tinychat","input":"hi"`,
		slices.Concat([]field{
			{"system_prompt", `"Be brief."`, "1"},
			{"stream", "true", `"x"`},
			{"store", "false", `"x"`},
			{"store_partial", "true", `"x"`},
			{"prefill", `"I"`, `1`},
			{"tool_approval", "true", `"x"`},
			{"background", "true", `"x"`},
			{"previous_response_id", `"resp_nowhere"`, "1"},
			{"max_output_tokens", "5", `"x"`},
			{"context_length", "4096", `"x"`},
			{"reasoning", `"off"`, "1"},
			{"integrations", `["mcp/nowhere"]`, "1"},
		}, samplingFields[:11], ourFields),
	},
	{
		"Embeddings", "openai.md#embeddings", "/v1/embeddings", `"model":"tinyembed","input":"hi"`,
		[]field{{"encoding_format", `"base64"`, "1"}, {"dimensions", "3", `"x"`}, {"user", `"a"`, "1"}, {"ttl", "600", `"x"`}},
	},
	{
		"Reranking", "openai.md#reranking", "/v1/rerank", `"model":"tinyrerank","query":"hi","documents":["hello","bye"]`,
		[]field{{"top_n", "1", `"x"`}, {"return_documents", "true", `"x"`}, {"max_tokens_per_doc", "8", `"x"`}, {"ttl", "600", `"x"`}},
	},
}

// becomes is what the engine is sent, and what the client gets.
type becomes struct{ code, upstream, answer string }

// changing matches what differs between two answers to the same request.
var changing = regexp.MustCompile(`"(id|created|created_at|completed_at|response_id|model_load_time_seconds|time_to_first_token|time_to_first_token_seconds|generation_time|tokens_per_second|item_id|total_duration|load_duration|prompt_eval_duration|eval_duration)":\s*("[^"]*"|[0-9.]+)|"context":\[[0-9,]*\]|resp_[0-9a-z]+`)

func (s *server) becomes(path, body string) becomes {
	s.t.Helper()
	before := len(s.fake.Events())
	got := s.do("POST", path, "{"+body+"}")
	b := becomes{answer: changing.ReplaceAllString(got.body, "")}
	if got.status >= 400 {
		if gjson.Get(got.body, "error").Type == gjson.String { // Ollama's have no codes
			b.code = strconv.Itoa(got.status)
		} else if b.code = got.code(); b.code == "" {
			b.code = gjson.Get(got.body, "error.type").Str
		}
		return b
	}
	if id := gjson.Get(got.body, "id").Str; gjson.Get(got.body, "background").Bool() {
		testkit.Eventually(s.t, "the response in the background is completed", func() bool { return s.status(path+"/"+id) == "completed" })
	}
	if id := gjson.Get(got.body, "response_id").Str; gjson.Get(got.body, "status").Str == "in_progress" {
		testkit.Eventually(s.t, "the chat in the background is completed", func() bool { return s.status("/api/v1/responses/"+id) == "completed" })
	}
	for _, ev := range s.fake.Events()[before:] {
		if ev.Method == http.MethodPost {
			b.upstream += sorted(ev.Body) + "\n"
		}
	}
	return b
}

// sorted is a JSON object with its members in order, without what differs between requests.
func sorted(body string) string {
	var object map[string]any
	if json.Unmarshal([]byte(body), &object) != nil {
		return body
	}
	delete(object, "id_slot")
	text, _ := json.Marshal(object)
	return string(text)
}

// describeFields writes the table of a family.
func describeFields(b *strings.Builder, s *server, f *family) {
	fmt.Fprintf(b, "\n## %s\n\n`POST %s`: [how the fields work](%s).\n\n| field | sent | what happens | wrong type |\n|---|---|---|---|\n", f.title, f.path, f.page)
	s.becomes(f.path, f.base) // loads the model
	plain := s.becomes(f.path, f.base)
	if plain.code != "" {
		s.t.Fatalf("without further fields, it gets %s", plain.code)
	}
	for _, field := range f.fields {
		right := s.becomes(f.path, f.base+","+field.with(field.right))
		wrong := s.becomes(f.path, f.base+","+field.with(field.wrong))
		result := "ignored"
		switch {
		case right.code != "" && right.code != plain.code:
			result = "refused: `" + right.code + "`"
		case right.upstream != plain.upstream:
			result = "engine"
		case right.answer == plain.answer && isOnlyChecked(f, field.name):
		case wrong.code != plain.code || right.answer != plain.answer:
			result = "lmcaddy"
		}
		code := ""
		if wrong.code != "" && wrong.code != plain.code {
			code = "`" + wrong.code + "`"
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s | %s |\n", field.name, strings.ReplaceAll(field.right, "|", `\|`), result, code)
	}
}

// The page about fields says what happens to them.
func TestFields_AreAsDocumented(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString(fieldsIntro)
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { inParallel(settings, 2) })
	withOthers(s)
	for _, f := range slices.Concat(families, ollamaFamilies) { // one after the other: as parallel tests, they would wait for all others
		describeFields(&page, s, &f)
	}
	testkit.Golden(t, fieldsFile, []byte(page.String()))
}
