package translate_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// endpointParsers parse the bodies of requests, by their endpoints.
func endpointParsers() map[string]func(*jsonbody.Body) *translate.Error {
	sees := capsOf(request.Caps{Vision: true})
	of := func(parse func(*jsonbody.Body, request.Caps) *translate.Error) func(*jsonbody.Body) *translate.Error {
		return func(body *jsonbody.Body) *translate.Error { return parse(body, sees) }
	}
	return map[string]func(*jsonbody.Body) *translate.Error{
		"/api/chat": of(func(b *jsonbody.Body, c request.Caps) *translate.Error { _, err := ollama.ParseChat(b, c); return err }),
		"/api/generate": of(func(b *jsonbody.Body, c request.Caps) *translate.Error {
			_, err := ollama.ParseGenerate(b, c)
			return err
		}),
		"/api/embed":  of(func(b *jsonbody.Body, c request.Caps) *translate.Error { _, err := ollama.ParseEmbed(b, c); return err }),
		"/api/create": func(b *jsonbody.Body) *translate.Error { _, err := ollama.ParseCreate(b); return err },
		"/api/v1/chat": of(func(b *jsonbody.Body, c request.Caps) *translate.Error {
			_, err := native.ParseChat(b, "m", c)
			return err
		}),
		"/v1/chat/completions": of(func(b *jsonbody.Body, c request.Caps) *translate.Error { _, err := openai.ParseChat(b, c); return err }),
		"/v1/completions": of(func(b *jsonbody.Body, c request.Caps) *translate.Error {
			_, err := openai.ParseCompletion(b, c)
			return err
		}),
		"/v1/embeddings": func(b *jsonbody.Body) *translate.Error { _, err := openai.ParseEmbedding(b); return err },
		"/v1/rerank":     func(b *jsonbody.Body) *translate.Error { _, err := openai.RerankJina.Parse(b); return err },
		"/v1/messages": of(func(b *jsonbody.Body, c request.Caps) *translate.Error {
			_, err := anthropic.ParseMessages(b, c)
			return err
		}),
		"/v1/responses": of(func(b *jsonbody.Body, c request.Caps) *translate.Error {
			_, err := responses.Parse(b, c)
			return err
		}),
	}
}

// TestLongArrays_TakeLittleMemory: what a request has too much of isn't kept. A hostile array has millions of elements; here, a quarter of one.
func TestLongArrays_TakeLittleMemory(t *testing.T) {
	const many = 1 << 18
	list := func(element string) string { return "[" + strings.Repeat(element+",", many) + element + "]" }
	numbers, texts, nothing := list("1"), list(`""`), list("{}")
	const function = `{"type":"function","name":"f","function":{"name":"f"}}`
	user := func(members string) string { return `{"role":"user",` + members + `}` }
	said := `"max_tokens":1,"messages":[` + user(`"content":"a"`) + `]`
	message := func(members string) string { return `{"max_tokens":1,"messages":[` + members + `]}` }
	block := func(block string) string { return message(user(`"content":[` + block + `]`)) }
	arrays := map[string][]string{ // in any place in which an array may be
		"/api/chat": {
			`{"messages":` + numbers + `}`, `{"messages":` + nothing + `}`, message(user(`"content":"a","images":` + numbers)), `{` + said + `,"tools":` + numbers + `}`,
			message(`{"role":"assistant","tool_calls":` + numbers + `}`), `{` + said + `,"options":{"stop":` + texts + `}}`,
			`{` + said + `,"format":{"type":"object","enum":` + numbers + `}}`,
		},
		"/api/generate": {`{"prompt":"a","context":` + numbers + `}`, `{"prompt":"a","images":` + numbers + `}`},
		"/api/embed":    {`{"input":` + numbers + `}`, `{"input":` + texts + `}`, `{"input":` + list(`"a"`) + `}`},
		"/api/create":   {`{"from":"a","parameters":{"stop":` + list(`"a"`) + `}}`, `{"from":"a","messages":` + numbers + `}`},
		"/api/v1/chat": {
			`{"input":` + numbers + `}`, `{"input":` + list(`{"type":"text","content":""}`) + `}`, `{"input":"a","integrations":` + numbers + `}`, `{"input":"a","integrations":` + list(`"mcp/a"`) + `}`,
			`{"input":"a","integrations":[{"type":"plugin","id":"mcp/a","allowed_tools":` + texts + `}]}`, `{"input":"a","stop":` + list(`"a"`) + `}`,
		},
		"/v1/chat/completions": {
			`{"messages":` + numbers + `}`, `{"messages":` + nothing + `}`, message(user(`"content":` + numbers)), message(`{"role":"assistant","tool_calls":` + numbers + `}`),
			`{` + said + `,"tools":` + numbers + `}`, `{` + said + `,"stop":` + numbers + `}`, `{` + said + `,"stop":` + list(`"a"`) + `}`,
			`{` + said + `,"tools":[` + function + `],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":` + numbers + `}}}`,
			`{` + said + `,"logit_bias":` + numbers + `}`, `{` + said + `,"logit_bias":[` + numbers + `]}`, `{` + said + `,"logit_bias":` + list("[1,1]") + `}`,
			`{` + said + `,"samplers":` + texts + `}`, `{` + said + `,"dry_sequence_breakers":` + texts + `}`,
			`{` + said + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object","enum":` + numbers + `}}}}`,
			`{` + said + `,"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":{"type":` + list("null") + `}}}]}`,
		},
		"/v1/completions": {`{"prompt":` + texts + `}`, `{"prompt":` + list("[1]") + `}`, `{"prompt":"a","stop":` + list(`"a"`) + `}`},
		"/v1/embeddings":  {`{"input":` + list(`"a"`) + `}`, `{"input":` + list("[1]") + `}`},
		"/v1/rerank":      {`{"query":"a","documents":` + numbers + `}`, `{"query":"a","documents":` + texts + `}`},
		"/v1/messages": {
			`{"max_tokens":1,"messages":` + numbers + `}`, `{"max_tokens":1,"messages":` + nothing + `}`, message(user(`"content":` + numbers)), `{` + said + `,"system":` + numbers + `}`,
			`{` + said + `,"system":` + list(`{"type":"text","text":""}`) + `}`, `{` + said + `,"stop_sequences":` + numbers + `}`, `{` + said + `,"stop_sequences":` + list(`"a"`) + `}`,
			`{` + said + `,"tools":` + numbers + `}`, block(`{"type":"tool_result","tool_use_id":"a","content":` + numbers + `}`), block(`{"type":"search_result","content":` + nothing + `}`),
			block(`{"type":"document","source":{"type":"content","content":` + numbers + `}}`), message(`{"role":"system","content":` + nothing + `}`),
		},
		"/v1/responses": {
			`{"input":` + numbers + `}`, `{"input":` + nothing + `}`, `{"input":[` + user(`"content":`+numbers) + `]}`, `{"input":[{"type":"reasoning","summary":` + numbers + `}]}`,
			`{"input":"a","tools":` + numbers + `}`, `{"input":"a","tools":[{"type":"namespace","name":"a","tools":` + list(`{"type":""}`) + `}]}`,
			`{"input":"a","tools":[` + function + `],"tool_choice":{"type":"allowed_tools","tools":` + list(`{"type":"a"}`) + `}}`,
			`{"input":"a","include":` + numbers + `}`, `{"input":"a","stop":` + list(`"a"`) + `}`,
			`{"input":"a","tools":[{"type":"mcp","server_label":"a","server_url":"http://a","allowed_tools":` + texts + `}]}`,
			`{"input":[{"type":"mcp_call","name":"a","server_label":"a","arguments":"{}","error":{"content":` + numbers + `}}]}`,
		},
	}
	for endpoint, parse := range endpointParsers() {
		for _, text := range arrays[endpoint] {
			raw := []byte(text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			body, err := jsonbody.Scan(raw)
			if err == nil {
				err = parse(body)
			}
			runtime.ReadMemStats(&after)
			// What is copied as a whole, a few times, is in proportion to the body. What is kept of each element isn't.
			if took := after.TotalAlloc - before.TotalAlloc; took > 4*uint64(len(raw))+10*many || err == nil {
				t.Errorf("%s, %.120s takes %d bytes: %v", endpoint, text, took, err)
			}
		}
		if arrays[endpoint] == nil {
			t.Errorf("%s isn't tried", endpoint)
		}
	}
}
