package api

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// What mlx_lm.server can't do is refused with a reason and the field, in each dialect's form, and before anything is loaded.
func TestMLX_Refusals(t *testing.T) {
	t.Parallel()
	s := serveMLX(t)
	const (
		chat, v0, responses, messages, native = "/v1/chat/completions", "/api/v0/chat/completions", "/v1/responses", "/v1/messages", "/api/v1/chat"
		completions                           = "/v1/completions"
		tools                                 = `,"tools":[{"type":"function","function":{"name":"a"}}]`
		flatTools                             = `,"tools":[{"type":"function","name":"a","parameters":{"type":"object"}}]`
		hi                                    = `"messages":[{"role":"user","content":"hi"}]`
		begun                                 = `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Well"}]`
		prompt                                = `"prompt":"hi"`
		image                                 = `data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==`
	)
	for name, tt := range map[string]struct{ path, body, param, want string }{
		"log probabilities":            {chat, hi + `,"logprobs":true`, "logprobs", "no log probabilities"},
		"log probabilities, v0":        {v0, hi + `,"logprobs":true,"top_logprobs":3`, "logprobs", "no log probabilities"},
		"log probabilities, Responses": {responses, `"input":"hi","top_logprobs":3,"include":["message.output_text.logprobs"]`, "include", "no log probabilities"},
		"log probabilities of texts":   {completions, prompt + `,"logprobs":2`, "logprobs", "no log probabilities"},
		"JSON":                         {chat, hi + `,"response_format":{"type":"json_object"}`, "response_format", "can't be held to answer in JSON"},
		"a schema":                     {chat, hi + `,"stream":true,"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"object"}}}`, "response_format", "can't be held"},
		"a schema, Responses":          {responses, `"input":"hi","text":{"format":{"type":"json_schema","name":"a","schema":{"type":"object"}}}`, "text.format", "can't be held"},
		"a schema, Messages":           {messages, hi + `,"max_tokens":9,"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`, "", "output_config.format: The engine"},
		"a demanded call":              {chat, hi + tools + `,"tool_choice":"required"`, "tool_choice", "can't be held to call a tool"},
		"a certain call":               {v0, hi + tools + `,"tool_choice":{"type":"function","function":{"name":"a"}}`, "tool_choice", "can't be held to call a tool"},
		"a demanded call, Responses":   {responses, `"input":"hi","tool_choice":"required"` + flatTools, "tool_choice", "can't be held to call a tool"},
		"a demanded call, Messages":    {messages, hi + `,"max_tokens":9,"tools":[{"name":"a","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}`, "", "tool_choice: The engine"},
		"the beginning of an answer":   {chat, begun, "messages", "can't continue an answer"},
		"a prefill, Messages":          {messages, begun + `,"max_tokens":9`, "", "can't continue an answer"},
		"an image":                     {chat, `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + image + `"}}]}]`, "messages[0].content[0].image_url.url", "does not take images"},
		"an image, Messages":           {messages, `"max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.TrimPrefix(image, "data:image/png;base64,") + `"}}]}]`, "", "images"},
		"an image, native":             {native, `"input":[{"type":"image","data_url":"` + image + `"}]`, "input[0]", "images"},
		"a template":                   {chat, hi + `,"chat_template_kwargs":{"chat_template":"x"}`, "chat_template_kwargs", "must not have"},
		"a token too far":              {chat, hi + `,"logit_bias":{"765":1}`, "logit_bias", "from 0 to 764"},
		"a text for tokens":            {v0, hi + `,"logit_bias":[["a",1]]`, "logit_bias", "from 0 to 764"},
		"a token too far, native":      {native, `"input":"hi","logit_bias":{"99999":1}`, "logit_bias", "from 0 to 764"},
		"a token too far in a text":    {completions, prompt + `,"logit_bias":{"99999":1}`, "logit_bias", "from 0 to 764"},
		"token ids":                    {completions, `"prompt":[1,2]`, "prompt", "takes no token ids"},
		"token ids, v0":                {"/api/v0/completions", `"prompt":[[1,2],[3]]`, "prompt", "takes no token ids"},
		"nothing":                      {completions, `"prompt":""`, "prompt", "at least one character"},
		"nothing among texts":          {completions, `"prompt":["a",""]`, "prompt", "at least one character"},
		"a suffix":                     {completions, prompt + `,"suffix":"b"`, "suffix", "can't fill a gap"},
		"the best of several":          {completions, prompt + `,"best_of":3`, "best_of", "how likely an answer is"},
		"embeddings":                   {"/v1/embeddings", `"input":"hi"`, "model", "no embedding model"},
		"a ranking":                    {"/v1/rerank", `"query":"a","documents":["b"]`, "model", "no reranker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.do("POST", tt.path, `{"model":"`+mlxModel+`",`+tt.body+`}`)
			if got.status != 400 || !strings.Contains(gjson.Get(got.body, "error.message").Str, tt.want) || gjson.Get(got.body, "error.param").Str != tt.param {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	t.Cleanup(func() {
		if in := s.node.Instances(); len(in) > 0 {
			t.Errorf("loaded: %v", in)
		}
	})
}

// What the server's template refuses is the request's fault.
func TestMLX_Faults(t *testing.T) {
	t.Parallel()
	s := serveMLX(t,
		fakekit.Rule{Contains: "odd roles", Status: 404, Body: `{"error": "Conversation roles must alternate in /Users/ann/models/x.jinja"}`},
		fakekit.Rule{Contains: "no sense", Cues: []fakekit.Cue{{After: 2, Do: fakekit.Garbage, Bytes: []byte("data: {\"choices\":\n\n")}}},
	)
	for path := range mlxDialects {
		for _, stream := range []string{"", `,"stream":true`} {
			got, _ := s.ask(path, "odd roles", stream)
			if got.status != 400 || !strings.Contains(got.body, "Conversation roles must alternate in …") {
				t.Errorf("%s%s: %d %s", path, stream, got.status, got.body)
			}
			if got, _ = s.ask(path, "no sense", stream); !strings.Contains(got.body, "The engine's answer can't be read.") {
				t.Errorf("%s%s: %d %s", path, stream, got.status, got.body)
			}
		}
	}
}
