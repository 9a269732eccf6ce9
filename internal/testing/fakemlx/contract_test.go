package fakemlx_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/closedport"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
)

// The contract can be held against a real server:
//
//	LMCADDY_MLX_COMMAND="python3 -m mlx_lm server" LMCADDY_MLX_MODEL=folder go test -v -run Contract ./internal/testing/fakemlx
//
// Each destructive case starts a server of its own. LMCADDY_MLX_URL names a running server, which only gets the harmless cases.

// quiet is how long is waited for what must not come.
const quiet = 300 * time.Millisecond

// contract is a server that is held to the contract.
type contract struct {
	command []string // of a real one; nil: the fake
	url     string   // of a running one
	model   string
	token   string // the id of a token whose text is plain
	said    string // that text
}

func newContract(t *testing.T) *contract {
	t.Helper()
	c := &contract{command: strings.Fields(os.Getenv("LMCADDY_MLX_COMMAND")), url: os.Getenv("LMCADDY_MLX_URL"), token: "66", said: " c"}
	if c.url == "" && len(c.command) == 0 {
		c.command = nil
		c.model = folder(t)
		t.Log("against the fake")
		return c
	}
	c.model = os.Getenv("LMCADDY_MLX_MODEL")
	if c.model == "" {
		c.model = filepath.Join("..", "..", "testdata", "mlx", "lmcaddy", "tinychat-mlx")
	}
	var err error
	if c.model, err = filepath.Abs(c.model); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(c.model, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	if c.token, c.said = plainToken(text); c.said == "" {
		t.Fatalf("%s has no token that is a character by itself", c.model)
	}
	t.Logf("against %s %s with %s", c.url, c.command, c.model)
	return c
}

// plainToken finds a token that is one character and never becomes a part of another token.
func plainToken(text []byte) (id, said string) {
	model := gjson.GetBytes(text, "model")
	merges := model.Get("merges").Raw
	for said := range strings.SplitSeq("czkqQZXJ", "") {
		if id := model.Get("vocab." + said); id.Exists() && !strings.Contains(merges, said) {
			return id.Raw, said
		}
	}
	return "", ""
}

// start starts a server with the model.
func (c *contract) start(t *testing.T) *process {
	t.Helper()
	return c.startWith(t, c.model)
}

func (c *contract) startWith(t *testing.T, model string) *process {
	t.Helper()
	if c.command == nil {
		return startInstalled(t, c.install(t), "--model", model)
	}
	return launch(t, c.command, closedport.Port(t), "--model", model)
}

// install installs a fake. Its long answers take long, as a real one's do.
func (c *contract) install(t *testing.T) *fakemlx.Engine {
	t.Helper()
	return fakemlx.Install(t, &fakemlx.Script{Rules: []fakekit.Rule{{Contains: `"max_tokens": 1000000`, Delay: time.Millisecond}}})
}

// launch starts a server with other arguments.
func (c *contract) launch(t *testing.T, port int, args ...string) *process {
	t.Helper()
	command := c.command
	if command == nil {
		command = []string{c.install(t).Path}
	}
	return launch(t, command, port, args...)
}

// harmless is a server that is only sent what does it no harm.
func (c *contract) harmless(t *testing.T) *process {
	t.Helper()
	if c.url == "" {
		return c.start(t).ready()
	}
	u, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return &process{t: t, port: port}
}

// destructive reports whether servers can be started, and broken.
func (c *contract) destructive() bool { return c.url == "" }

// forced is the bias with which a model says one token only.
func (c *contract) forced() string { return fmt.Sprintf(`"logit_bias": {%q: 100}`, c.token) }

const (
	chats       = "/v1/chat/completions"
	completions = "/v1/completions"
	messages    = `"messages": [{"role": "user", "content": "How are you?"}]`
	empty       = "^$" // the connection is closed without a byte
	jsonHead    = `(?s)^HTTP/1\.0 %s\r\nServer: BaseHTTP/[0-9.]+ Python/3\.[0-9.]+\r\nDate: [^\r]+ GMT\r\nContent-type: application/json\r\n` +
		`Access-Control-Allow-Origin: \*\r\nAccess-Control-Allow-Methods: \*\r\nAccess-Control-Allow-Headers: \*\r\n`
	streamHead = `(?s)^HTTP/1\.0 200 OK\r\nServer: [^\r]+\r\nDate: [^\r]+\r\nContent-type: text/event-stream\r\nCache-Control: no-cache\r\n` +
		`Access-Control-Allow-Origin: \*\r\nAccess-Control-Allow-Methods: \*\r\nAccess-Control-Allow-Headers: \*\r\n\r\n`
	keepalives = `(: keepalive \d+/\d+\n\n)+`
	zeroFirst  = `: keepalive 0/\d+\n\n` + keepalives
	envelope   = `data: {"id": "chatcmpl-[0-9a-f-]{36}", "system_fingerprint": "[^"]+", "object": "chat.completion.chunk", "model": "default_model", "created": \d+, `
	deltas     = `(` + envelope + `"choices": \[{"index": 0, "finish_reason": null, "delta": {"role": "assistant"(, "content": "[^}]*")?(, "reasoning": "[^}]*")?}}\]}\n\n)*`
	lastDelta  = envelope + `"choices": \[{"index": 0, "finish_reason": "(stop|length)", "delta": {"role": "assistant"(, "content": "[^}]*")?(, "reasoning": "[^}]*")?}}\]}\n\n`
	usage      = `"usage": {"prompt_tokens": \d+, "completion_tokens": \d+, "total_tokens": \d+, "prompt_tokens_details": {"cached_tokens": \d+}}`
	usageChunk = `data: {"id": "[^"]+", "system_fingerprint": "[^"]+", "object": "chat.completion", "model": "default_model", "created": \d+, "choices": \[\], ` + usage + `}\n\n`
	done       = `data: \[DONE\]\n\n$`
)

// with is a JSON answer of a status with a body, both regular expressions.
func with(status, body string) string { return fmt.Sprintf(jsonHead, status) + `\r\n` + body + `$` }

// bad is a 400 with what is wrong with the JSON.
func bad(text string) string {
	return with("400 Bad Request", `{"error": "Invalid JSON in request body: `+text+`"}`)
}

// missing is a 404 with an error.
func missing(text string) string { return with("404 Not Found", `{"error": "`+text+`"}`) }

// answered is a JSON answer with a length.
var answered = fmt.Sprintf(jsonHead, "200 OK") + `Content-Length: \d+\r\n\r\n{"id": ".*` + usage + `}$`

func asked(fields string) string { return `{"max_tokens": 3, ` + fields + `, ` + messages + `}` }

func TestContract_Answers(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	p := c.harmless(t)
	tests := []struct{ name, path, body, want string }{
		{"chat", chats, asked(`"stream": false`), answered},
		{"chat at the short path", "/chat/completions", asked(`"stream": false`), answered},
		{"chat message", chats, asked(`"seed": 1, ` + c.forced()), `"object": "chat.completion", "model": "default_model", .*"finish_reason": "length", "message": {"role": "assistant", "content": "` + regexp.QuoteMeta(strings.Repeat(c.said, 3)) + `"}}`},
		{"stream", chats, asked(`"stream": true`), streamHead + keepalives + deltas + lastDelta + done},
		{"stream with usage", chats, asked(`"stream": true, "stream_options": {"include_usage": true}`), streamHead + keepalives + deltas + lastDelta + usageChunk + done},
		{"stream without usage", chats, asked(`"stream": true, "stream_options": {"include_usage": false}`), streamHead + keepalives + deltas + lastDelta + done},
		{"stream options without usage", chats, asked(`"stream": true, "stream_options": {}`), streamHead + keepalives + deltas + lastDelta + `$`},
		{"stream options of another type", chats, asked(`"stream": true, "stream_options": true`), streamHead + keepalives + deltas + lastDelta + `$`},
		{"stream with a seed", chats, asked(`"stream": true, "seed": 1`), streamHead + zeroFirst + deltas + lastDelta + done},
		{"completion", completions, `{"prompt": "one two", "max_tokens": 3}`, answered},
		{"completion text", completions, `{"prompt": "one two", "max_tokens": 2, "seed": 1, ` + c.forced() + `}`, `"id": "cmpl-.*"object": "text_completion".*"choices": \[{"index": 0, "finish_reason": "length", "text": "` + regexp.QuoteMeta(strings.Repeat(c.said, 2)) + `"}\]`},
		{"completion stream", completions, `{"prompt": "one two", "max_tokens": 2, "stream": true, "stream_options": {"include_usage": true}}`, streamHead + keepalives + `(data: {"id": "cmpl-[^\n]+"object": "text_completion"[^\n]+"finish_reason": [^\n]+"text": [^\n]+\n\n)+` + usageChunk + done},
		{"model is echoed", chats, asked(fmt.Sprintf(`"model": %q`, c.model)), `"model": "` + regexp.QuoteMeta(c.model) + `"`},
		{"zero tokens are one", chats, asked(`"max_completion_tokens": 0`), `"completion_tokens": 1,`},
		{"max_completion_tokens null", chats, asked(`"max_completion_tokens": null`), answered},
		{"empty stop", chats, asked(`"stop": [""]`), `"finish_reason": "stop", "message": {"role": "assistant", "content": null}`},
		{"content null", chats, `{"max_tokens": 1, "messages": [{"role": "user", "content": null}]}`, answered},
		{"content of parts", chats, `{"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}`, answered},
		{"true is a number", chats, asked(`"temperature": true`), answered},
		{"largest seed", chats, asked(`"seed": 18446744073709551615`), answered},
		{"adapters of the default model", chats, asked(`"adapters": "/nope"`), answered},
		{"no tools", chats, asked(`"tools": []`), answered},
		{"biases of none", chats, asked(`"logit_bias": {"0": 0}`), answered},
		{"what it doesn't know", chats, asked(`"n": 2, "response_format": {"type": "json_object"}, "tool_choice": "required", "user": 5`), answered},
		{"top_k beyond the vocabulary without temperature", chats, asked(`"top_k": 100000, "temperature": 0`), answered},
		{"logprobs", chats, asked(`"logprobs": true`), `"logprobs": {"content": \[{"id": \d+, "logprob": -?[0-9.e-]+}`},
		{"null draft", chats, asked(`"draft_model": null`), answered},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { matches(t, p.post(tt.path, tt.body), tt.want) })
	}
}

func TestContract_Refusals(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	p := c.harmless(t)
	tests := []struct{ name, path, body, want string }{
		{"no JSON", chats, `{bad`, bad(`Expecting property name enclosed in double quotes: line 1 column 2 \(char 1\)`)},
		{"nothing", chats, ``, bad(`Expecting value: line 1 column 1 \(char 0\)`)},
		{"more than JSON", chats, `{} x`, bad(`Extra data: line 1 column 4 \(char 3\)`)},
		{"a list", chats, `[]`, with("400 Bad Request", `{"error": "Request should be a JSON dictionary"}`)},
		{"no UTF-8", chats, "{\"a\": \"\xff\"}", empty},
		{"another path", "/v1/embeddings", `{}`, with("404 Not Found", "Not Found")},
		{"a query", chats + "?a=1", `{}`, with("404 Not Found", "Not Found")},
		{"no messages", chats, `{}`, empty},
		{"no prompt", completions, `{}`, empty},
		{"prompt null", completions, `{"prompt": null}`, missing("text input must be of type `str` .*")},
		{"prompt of tokens", completions, `{"prompt": [1, 2]}`, missing("text input must be of type `str` .*")},
		{"prompt list with a seed", completions, `{"prompt": ["a"], "seed": 1}`, empty},
		{"prompt list with a seed, streamed", completions, `{"prompt": ["a"], "seed": 1, "stream": true}`, streamHead + "$"},
		{"no messages in the list", chats, `{"messages": []}`, missing("list index out of range")},
		{"messages null", chats, `{"messages": null}`, missing("'NoneType' object is not iterable")},
		{"messages text", chats, `{"messages": "x"}`, missing("'str' object has no attribute 'get'")},
		{"message text", chats, `{"messages": ["x"]}`, missing("'str' object has no attribute 'get'")},
		{"no role", chats, `{"messages": [{"content": "x"}]}`, missing("'role'")},
		{"part without type", chats, `{"messages": [{"role": "user", "content": [{"text": "x"}]}]}`, missing("'type'")},
		{"image", chats, `{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}`, missing("Only 'text' content type is supported.")},
		{"half a surrogate", chats, `{"messages": [{"role": "user", "content": "a\ud800b"}]}`, missing("TextEncodeInput must be Union.*")},
		{"arguments that are no JSON", chats, `{"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{bad"}}]}]}`, missing("Expecting property name enclosed in double quotes: line 1 column 2 .char 1.")},
		{"arguments that are an object", chats, `{"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}]}`, missing("the JSON object must be str, bytes or bytearray, not dict")},
		{"tools text", chats, asked(`"tools": "x"`), missing("Tools should either be a JSON schema, .*")},
		{"template arguments text", chats, asked(`"chat_template_kwargs": "x"`), missing("dictionary update sequence element #0 has length 1; 2 is required")},
		{"template argument of its own", chats, asked(`"chat_template_kwargs": {"tokenize": false}`), missing("dict.. got multiple values for keyword argument 'tokenize'")},
		{"unknown model", chats, asked(`"model": "nobody/nothing"`), missing("Cannot find .*")},
		{"unknown draft", chats, asked(`"draft_model": "nobody/nothing"`), missing("Cannot find .*")},
		{"model null", chats, asked(`"model": null`), empty},
		{"temperature null", chats, asked(`"temperature": null`), empty},
		{"temperature text", chats, asked(`"temperature": "1"`), empty},
		{"temperature below 0", chats, asked(`"temperature": -1`), empty},
		{"top_p above 1", chats, asked(`"top_p": 1.5`), empty},
		{"top_k below 0", chats, asked(`"top_k": -1`), empty},
		{"top_k with a point", chats, asked(`"top_k": 40.0`), empty},
		{"max_tokens with a point", chats, asked(`"max_completion_tokens": 4.0`), empty},
		{"max_tokens null", chats, `{"max_tokens": null, ` + messages + `}`, empty},
		{"stream null", chats, asked(`"stream": null`), empty},
		{"xtc without a point", chats, asked(`"xtc_probability": 0`), empty},
		{"logprobs number", chats, asked(`"logprobs": 1`), empty},
		{"top_logprobs above 11", chats, asked(`"top_logprobs": 12`), empty},
		{"bias of a text", chats, asked(`"logit_bias": {"a": 1}`), empty},
		{"biases in a list", chats, asked(`"logit_bias": [1]`), empty},
		{"seed with a point", chats, asked(`"seed": 1.5`), empty},
		{"seed below 0", chats, asked(`"seed": -1`), empty},
		{"seed too large", chats, asked(`"seed": 18446744073709551616`), empty},
		{"no tokens with a seed", chats, asked(`"seed": 1, "max_completion_tokens": 0`), empty},
		{"no tokens with a seed, streamed", chats, asked(`"seed": 1, "stream": true, "max_completion_tokens": 0`), streamHead + zeroFirst + "$"},
		{"stop number with a seed", chats, asked(`"seed": 1, "stop": 5`), missing("'int' object is not iterable")},
		{"top_k beyond the vocabulary with a seed", chats, asked(`"seed": 1, "stream": true, "top_k": 100000, "temperature": 1`), streamHead + `(: keepalive \d+/\d+\n\n)+$`},
		{"good again", chats, asked(`"stream": false`), answered},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { matches(t, p.post(tt.path, tt.body), tt.want) })
	}
}

func TestContract_Requests(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	p := c.harmless(t)
	tests := []struct{ name, request, want string }{
		{"health", "GET /health HTTP/1.1\r\n\r\n", with("200 OK", `{"status": "ok"}`)},
		{"health with a query", "GET /health?a HTTP/1.1\r\n\r\n", with("404 Not Found", "Not Found")},
		{"head", "HEAD /health HTTP/1.1\r\n\r\n", `^HTTP/1\.0 501 Unsupported method \('HEAD'\)\r\n[^<]*$`},
		{"put", "PUT /health HTTP/1.1\r\n\r\n", `(?s)^HTTP/1\.0 501 Unsupported method \('PUT'\)\r\n.*<title>Error response</title>`},
		{"options", "OPTIONS /x HTTP/1.1\r\n\r\n", with("204 No Content", "")},
		{"chunked", "POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", with("411 Length Required", `{"error": "Content-Length header is required"}`)},
		{"length that is none", "POST /v1/completions HTTP/1.1\r\nContent-Length: x\r\n\r\n", with("400 Bad Request", `{"error": "Invalid Content-Length header"}`)},
		{"kept alive", "GET /health HTTP/1.1\r\nConnection: keep-alive\r\n\r\n", with("200 OK", `{"status": "ok"}`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { matches(t, p.exchange(tt.request), tt.want) })
	}
}

// matches checks an answer against a regular expression.
func matches(t *testing.T, answer, want string) {
	t.Helper()
	if !regexp.MustCompile(want).MatchString(answer) {
		t.Errorf("answered with\n%s\nwant\n%s", answer, want)
	}
}

func TestContract_PromptIsCached(t *testing.T) {
	t.Parallel()
	c := newContract(t)
	p := c.harmless(t)
	body := asked(`"logit_bias": {"0": 0}, "messages": [{"role": "user", "content": "one two three"}], "stream": false`)
	body = strings.Replace(body, messages, `"n": 1`, 1)
	first, second := p.post(chats, body), p.post(chats, body)
	matches(t, second, `"prompt_tokens": (\d+), .*"cached_tokens": [1-9]\d*}`)
	if first == second {
		t.Error("two answers are the same")
	}
}
