package e2e

import (
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// lastResponse stands for the id of the last response that the server has told.
const lastResponse = "resp_LAST"

// anyRequest returns a request of any dialect: one of [randomRequest], or of the Responses API, Ollama's, or about models and stored answers.
func anyRequest(from *rand.Rand) (method, path, body string) {
	r := random{from}
	switch method = http.MethodPost; r.IntN(20) {
	case 0, 1, 2:
		path, body = r.responses()
	case 3, 4, 5:
		path, body = r.ollama()
	case 6:
		path, body = "/api/v1/chat", r.object(r.name(), r.field("input", r.text()), r.field("previous_response_id", `"`+lastResponse+`"`), r.field("stream", "true", "false"),
			r.field("temperature", "0", "1"), r.field("max_output_tokens", "1", "8"))
	case 7:
		path = r.pick("/v1/embeddings", "/api/v0/embeddings", "/v1/rerank", "/v1/reranking", "/rerank", "/v2/rerank")
		body = r.object(r.field("model", `"tinyembed"`, `"tinyrerank"`), r.field("input", `"a"`, `["a","b"]`, r.text()), r.field("encoding_format", `"float"`, `"base64"`),
			r.field("dimensions", "8", "64"), r.field("query", `"a"`), r.field("documents", `["a","b"]`, `[{"text":"a"}]`), r.field("texts", `["a"]`), r.field("top_n", "1", "0"))
	case 8:
		path = r.pick("/api/v1/models/load", "/api/v1/models/load", "/api/v1/models/unload", "/api/v1/models/pin", "/api/v1/models/download", "/api/v1/tokens", "/api/v1/mcp")
		body = r.object(r.field("model", `"tinyembed"`, `"lmcaddy/tinyrerank"`, `"nobody"`), r.field("context_length", "256", "512"), r.field("instance_id", `"lmcaddy/tinyembed"`, `"nobody"`), r.field("pinned", "false"), r.field("echo_load_config", "true"),
			r.field("flash_attention", "true"), r.field("eval_batch_size", "64"), r.field("name", `"a"`), r.field("scopes", `["inference"]`, `["x"]`))
	case 9, 10:
		method, path = r.about()
	default:
		path, body = randomRequest(from)
	}
	return method, path, body
}

func (r random) name() string {
	return r.field("model", `"`+harness.Model+`"`, `"`+harness.Bare+`"`, `"`+harness.Bare+`"`, `"tinychat:latest"`, `"nobody"`)
}

// object returns an object of about two thirds of the fields, and sometimes of all.
func (r random) object(fields ...string) string {
	some, all := fields[:0:0], r.IntN(4) == 0
	for i, f := range fields {
		if all || i == 0 || r.IntN(3) > 0 {
			some = append(some, f)
		}
	}
	return "{" + strings.Join(some, ",") + "}"
}

// rarely returns one field in four of some.
func (r random) rarely(fields ...string) (some []string) {
	for _, f := range fields {
		if r.IntN(4) == 0 {
			some = append(some, f)
		}
	}
	return some
}

func (r random) responses() (path, body string) {
	item := r.pick(`{"role":"user","content":`+r.text()+`}`, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":`+r.text()+`}]}`,
		`{"role":"user","content":[{"type":"input_text","text":`+r.text()+`}]}`, `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"1"}`,
		`{"type":"reasoning","summary":[]}`, `{"type":"x"}`, `{"role":"developer","content":"d"}`, `{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`)
	fields := append([]string{r.name(), r.field("input", r.text(), "["+item+"]", "["+item+`,{"role":"user","content":"hi"}]`)}, r.rarely(
		`"stream":true`, r.field("instructions", r.text()), r.field("temperature", "0", "1", "3"), r.field("top_p", "0.5"), r.field("store", "true", "false"),
		`"tools":[{"type":"function","name":"f","parameters":`+r.schema(2)+`}],`+r.field("tool_choice", `"auto"`, `"required"`, `"none"`, `{"type":"function","name":"f"}`),
		r.field("text", `{"format":{"type":"json_schema","name":"a","schema":`+r.schema(2)+`}}`, `{"format":{"type":"text"}}`, `{"format":{"type":"json_object"}}`),
		r.field("reasoning", `{"effort":"low"}`, `{"effort":"none"}`), r.field("previous_response_id", `"`+lastResponse+`"`, `"resp_0"`), r.field("metadata", `{"a":"b"}`),
		r.field("include", `["message.output_text.logprobs"]`, `["reasoning.encrypted_content"]`), r.field("truncation", `"auto"`, `"disabled"`), r.field("top_logprobs", "2", "21"),
		r.field("parallel_tool_calls", "false"), r.field("user", `"u"`), r.field("x_unknown", "1"))...)
	path = r.pick("/v1/responses", "/v1/responses", "/v1/responses", "/v1/responses/input_tokens", "/v1/responses/compact")
	return path, "{" + strings.Join(append(fields, r.field("max_output_tokens", "16", "20")), ",") + "}"
}

func (r random) ollama() (path, body string) {
	path = r.pick("chat", "chat", "generate", "generate", "embed", "embeddings", "show", "copy", "delete", "create", "tags")
	fields := []string{r.name()}
	switch path {
	case "chat":
		fields = append(append(fields, `"messages":`+r.messages()), r.rarely(`"tools":[{"type":"function","function":{"name":"f","parameters":`+r.schema(2)+`}}]`)...)
	case "generate":
		fields = append(append(fields, r.field("prompt", r.text())), r.rarely(r.field("system", r.text()), r.field("suffix", `"b"`), r.field("raw", "true"), r.field("template", `"t"`),
			r.field("context", "[1,2]"), r.field("images", `["AAAA"]`))...)
	case "embed", "embeddings":
		fields[0] = r.field("model", `"tinyembed"`, `"tinychat"`)
		fields = append(fields, r.field("input", `"a"`, `["a","b"]`), r.field("prompt", `"a"`), r.field("truncate", "false"))
	case "copy":
		fields = append(fields, `"source":"nobody"`, r.field("destination", `"b"`))
	case "create":
		fields = append(fields, r.field("from", `"nobody"`))
	case "delete":
		fields[0] = `"model":"nobody"`
	}
	fields = append(fields, r.rarely(r.field("stream", "true", "false"), r.field("format", `"json"`, r.schema(2)), r.field("think", "true", "false", `"low"`), r.field("keep_alive", "60", `"5m"`),
		r.field("verbose", "true"))...)
	return "/api/" + path, "{" + strings.Join(fields, ",") + `,"options":{` + strings.Join(append(r.sampling(), r.field("num_predict", "1", "8")), ",") + `}}`
}

// about returns a request without a body.
func (r random) about() (method, path string) {
	stored := r.pick("/v1/responses/", "/api/v1/responses/") + r.pick(lastResponse, lastResponse, "resp_0")
	method = r.pick("GET", "GET", "GET", "GET", "GET", "DELETE", "HEAD", "PUT")
	if method == "GET" && r.IntN(3) == 0 {
		return method, r.pick(stored, stored, stored+"/input_items", stored+"?stream=true", stored+"/x")
	}
	if method == "DELETE" {
		return method, r.pick(stored, "/api/v1/models/nobody", "/api/v1/warm?model=nobody", "/v1/models", "/api/v1/conversations/nobody", "/api/v1/tokens/nobody")
	}
	return method, r.pick("/v1/models", "/v1/models/tinychat", "/v1/models/lmcaddy/tinychat", "/v1/models/nobody", "/api/v0/models", "/api/v0/models/tinychat", "/api/v0/models/nobody", "/api/v1/models",
		"/api/v1/models/lmcaddy/tinychat", "/api/v1/models/nobody", "/api/v1/models/companions", "/api/v1/models/download", "/api/v1/models/download/x", "/api/v1/ps", "/api/v1/settings", "/api/v1/health",
		"/api/v1/usage", "/api/v1/usage?by=model", "/api/v1/usage?x=1", "/api/v1/usage?from=x", "/api/v1/usage?by=x", "/api/v1/conversations?cursor=x", "/api/v1/conversations/"+lastResponse, "/api/v1/requests?outcome=x",
		"/api/v1/models/variants", "/api/v1/conversations?limit=2", "/api/v1/conversations?limit=x", "/api/v1/requests?limit=1", "/api/v1/requests/x", "/api/v1/mcp",
		"/api/v1/mcp/x", "/api/v1/warm", "/api/v1/tokens", "/api/v1/logs?limit=x", "/api/tags", "/api/ps", "/api/version", "/api/x", "/v1/x", "/v1", "/api", "/chat/completions",
		"/lmstudio-greeting", "/api/v1/chat", "/v1/messages", "/api/v1/root.crt", "/api/blobs/sha256:0")
}
