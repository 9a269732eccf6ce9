package translate_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// agentModel is a model whose thinking can be turned off, and that takes images.
var agentModel = request.Caps{Vision: true, Reasoning: []string{"off", "on"}}

// sentBy returns the engine's request for a request of each dialect, or the error.
var sentBy = map[string]func(*jsonbody.Body) (string, *translate.Error){
	"chat": func(body *jsonbody.Body) (string, *translate.Error) {
		chat, err := openai.ParseChat(body, capsOf(request.Caps{Vision: true, Audio: true}))
		if err != nil {
			return "", err
		}
		return string(bytes.Join(llamaserver.Wire{}.Chat(body, chat, 0).Body, nil)), nil
	},
	"completions": func(body *jsonbody.Body) (string, *translate.Error) {
		c, err := openai.ParseCompletion(body, capsOf(request.Caps{}))
		if err != nil {
			return "", err
		}
		return string(bytes.Join(llamaserver.Wire{}.Completion(body, c, 0, 0).Body, nil)), nil
	},
	"embeddings": func(body *jsonbody.Body) (string, *translate.Error) {
		e, err := openai.ParseEmbedding(body)
		if err != nil {
			return "", err
		}
		return string(bytes.Join(llamaserver.Wire{}.Embeddings(body, e).Body, nil)), nil
	},
	"rerank": func(body *jsonbody.Body) (string, *translate.Error) {
		r, err := openai.RerankJina.Parse(body)
		if err != nil {
			return "", err
		}
		return string(bytes.Join(llamaserver.Wire{}.Rerank(body, r).Body, nil)), nil
	},
	"messages": func(body *jsonbody.Body) (string, *translate.Error) {
		m, err := anthropic.ParseMessages(body, agentModel)
		if err != nil {
			return "", err
		}
		upstream, err := m.Upstream()
		if err != nil {
			return "", err
		}
		return string(bytes.Join(llamaserver.Wire{}.Chat(upstream, &m.Chat, 0).Body, nil)), nil
	},
	"native": func(body *jsonbody.Body) (string, *translate.Error) {
		c, err := native.ParseChat(body, "m", capsOf(request.Caps{Vision: true, Audio: true}))
		if err != nil {
			return "", err
		}
		upstream, err := c.Upstream([]translate.Item{c.Input}, nil)
		if err != nil {
			return "", err
		}
		return string(bytes.Join(llamaserver.Wire{}.Chat(upstream, &c.Chat, 0).Body, nil)), nil
	},
}

// A field that is null has the same meaning as an absent field. NULL marks each such field.
func TestNull_IsAbsence(t *testing.T) {
	t.Parallel()
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	const schema = `{"type":"object",NULL"title":null,"properties":{"a":{"type":"string",NULL"description":null,NULL"enum":null,"default":null},"b":{"type":"array",NULL"items":null}},` +
		`NULL"required":null,NULL"additionalProperties":null,NULL"$defs":null}`
	for dialect, requests := range map[string]map[string]string{
		"chat": {
			"the top": `{NULL"temperature":null,NULL"stop":null,NULL"n":null,NULL"seed":null,NULL"max_tokens":null,NULL"max_completion_tokens":null,NULL"tools":null,NULL"tool_choice":null,NULL"response_format":null,` +
				`NULL"stream_options":null,NULL"logit_bias":null,NULL"logprobs":null,NULL"top_logprobs":null,NULL"parallel_tool_calls":null,NULL"reasoning_effort":null,NULL"metadata":null,NULL"user":null,NULL"store":null,NULL"chat_template_kwargs":null,` + hi + `}`,
			"a tool":                `{"tools":[{"type":"function","function":{"name":"f",NULL"description":null,NULL"parameters":null,NULL"strict":null}}],` + hi + `}`,
			"a tool's type":         `{"tools":[{NULL"type":null,"function":{"name":"f"}}],` + hi + `}`,
			"a schema":              `{"tools":[{"type":"function","function":{"name":"f","parameters":` + schema + `}}],` + hi + `}`,
			"a schema, demanded":    `{"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":` + schema + `}}],` + hi + `}`,
			"properties":            `{"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",NULL"properties":null}}}],` + hi + `}`,
			"a message":             `{"messages":[{"role":"user","content":"hi",NULL"name":null,NULL"tool_calls":null,NULL"tool_call_id":null,NULL"refusal":null,NULL"audio":null,NULL"function_call":null,NULL"reasoning_content":null,NULL"reasoning":null}]}`,
			"an assistant's":        `{"messages":[{"role":"assistant",NULL"content":null,"tool_calls":[{NULL"id":null,NULL"type":null,"function":{"name":"f",NULL"arguments":null}}]},{"role":"tool",NULL"content":null}]}`,
			"parts":                 `{"messages":[{"role":"user","content":[{"type":"text","text":"a",NULL"cache_control":null},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + testkit.Pixel + `",NULL"detail":null}},{"type":"input_audio",NULL"id":null,"input_audio":{"data":"` + testkit.Sound + `",NULL"id":null,"format":"wav"}}]}]}`,
			"a format's schema":     `{"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + schema + `,NULL"strict":null,NULL"description":null}},` + hi + `}`,
			"a format's holder":     `{"response_format":{"type":"json_schema","schema":{"type":"object"},NULL"json_schema":null},` + hi + `}`,
			"a format's own schema": `{"response_format":{"type":"json_object",NULL"schema":null},` + hi + `}`,
			"options of a stream":   `{"stream":true,"stream_options":{NULL"include_usage":null},` + hi + `}`,
		},
		"completions": {
			"the top": `{"prompt":"a",NULL"suffix":null,NULL"max_tokens":null,NULL"stop":null,NULL"n":null,NULL"best_of":null,NULL"echo":null,NULL"logprobs":null,NULL"seed":null,NULL"stream":null,NULL"stream_options":null,NULL"logit_bias":null,NULL"user":null,NULL"temperature":null,NULL"presence_penalty":null}`,
		},
		"embeddings": {
			"the top": `{"input":"a",NULL"dimensions":null,NULL"encoding_format":null,NULL"user":null}`,
		},
		"rerank": {
			"the top": `{"query":"a","documents":["b"],NULL"top_n":null,NULL"return_documents":null}`,
		},
		"messages": {
			"the top": `{"max_tokens":9,NULL"system":null,NULL"stop_sequences":null,NULL"temperature":null,NULL"top_p":null,NULL"top_k":null,NULL"tools":null,NULL"tool_choice":null,NULL"thinking":null,NULL"metadata":null,NULL"output_config":null,NULL"output_format":null,` +
				`NULL"service_tier":null,NULL"container":null,NULL"mcp_servers":null,NULL"context_management":null,` + hi + `}`,
			"a tool": `{"max_tokens":9,"tools":[{"name":"f",NULL"type":null,NULL"description":null,"input_schema":` + schema + `,NULL"cache_control":null,NULL"strict":null}],` +
				`"tool_choice":{"type":"any",NULL"name":null,NULL"disable_parallel_tool_use":null},` + hi + `}`,
			"properties": `{"max_tokens":9,"tools":[{"name":"f","input_schema":{"type":"object",NULL"properties":null}}],` + hi + `}`,
			"blocks": `{"max_tokens":9,"system":[{"type":"text","text":"s",NULL"cache_control":null,NULL"citations":null}],"messages":[{"role":"user","content":[{"type":"text","text":"a",NULL"citations":null,NULL"cache_control":null}]},` +
				`{"role":"assistant","content":[{"type":"thinking","thinking":"t",NULL"signature":null},{"type":"text","text":"b",NULL"citations":null},{"type":"tool_use","id":"1","name":"f",NULL"input":null,NULL"cache_control":null}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1",NULL"content":null,NULL"is_error":null,NULL"cache_control":null},{"type":"document",NULL"title":null,NULL"context":null,NULL"citations":null,"source":{"type":"text",NULL"media_type":null,"data":"d"}}]}]}`,
			"thinking":         `{"max_tokens":9,"thinking":{"type":"adaptive",NULL"display":null,NULL"budget_tokens":null},"output_config":{NULL"effort":null,NULL"format":null},` + hi + `}`,
			"a format":         `{"max_tokens":9,"output_config":{"format":{"type":"json_schema","schema":` + schema + `}},` + hi + `}`,
			"a format's place": `{"max_tokens":9,"output_config":{NULL"format":null},"output_format":{"type":"json_schema","schema":{"type":"object"}},` + hi + `}`,
		},
		"native": {
			"the top": `{"input":"a",NULL"system_prompt":null,NULL"previous_response_id":null,NULL"store":null,NULL"temperature":null,NULL"top_p":null,NULL"top_k":null,NULL"min_p":null,NULL"repeat_penalty":null,NULL"max_output_tokens":null,NULL"reasoning":null,` +
				`NULL"context_length":null,NULL"integrations":null,NULL"stop":null,NULL"seed":null,NULL"logit_bias":null}`,
			"an input": `{"input":[{"type":"text","content":"a",NULL"id":null},{"type":"image",NULL"detail":null,"data_url":"data:image/png;base64,` + testkit.Pixel + `"},{"type":"audio",NULL"role":null,"data_url":"data:audio/wav;base64,` + testkit.Sound + `"}]}`,
		},
	} {
		for name, request := range requests {
			t.Run(dialect+"/"+name, func(t *testing.T) {
				t.Parallel()
				got, err := sentBy[dialect](testkit.Scan(t, strings.ReplaceAll(request, "NULL", "")))
				if err != nil {
					t.Fatal(err)
				}
				without, err := sentBy[dialect](testkit.Scan(t, withoutMarked(request)))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(gjson.Parse(without).Value(), gjson.Parse(got).Value()); diff != "" {
					t.Errorf("(-without +with null):\n%s", diff)
				}
			})
		}
	}
}

// withoutMarked is a request without the fields that NULL stands before.
func withoutMarked(request string) string {
	for {
		before, after, ok := strings.Cut(request, "NULL")
		if !ok {
			return request
		}
		_, after, _ = strings.Cut(after, ":null")
		if rest, hasNext := strings.CutPrefix(after, ","); hasNext {
			after = rest
		} else {
			before = strings.TrimSuffix(before, ",")
		}
		request = before + after
	}
}
