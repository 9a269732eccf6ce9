package e2e

import (
	"image/color"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// A dialect checks that an error is one of its own, and about a field.
type dialect func(t *testing.T, r harness.Reply, field string)

func openAIStyle(t *testing.T, r harness.Reply, field string) {
	t.Helper()
	wantOpenAIError(t, r, "invalid_request_error", r.Get("error.code").Str)
	if param := r.Get("error.param").Str; !strings.HasPrefix(param, field) {
		t.Errorf("param %q, want %q: %s", param, field, r.Body)
	}
}

func nativeStyle(t *testing.T, r harness.Reply, field string) {
	t.Helper()
	wantNativeError(t, r, "invalid_request")
	if param := r.Get("error.param").Str; !strings.HasPrefix(param, field) {
		t.Errorf("param %q, want %q: %s", param, field, r.Body)
	}
}

func anthropicStyle(t *testing.T, r harness.Reply, field string) {
	t.Helper()
	wantJSON(t, r)
	if r.Get("type").Str != "error" || r.Get("error.type").Str != "invalid_request_error" || !strings.HasPrefix(r.Get("error.message").Str, field) {
		t.Errorf("want an error about %s: %s", field, r.Body)
	}
}

// TestMLX_RefusesWhatItCannotDo in the client's dialect, with the field's name, before anything is loaded.
func TestMLX_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	s := mlxLM.start(t, harness.Config{})
	ask, respond := harness.Ask(capital), harness.RespondAsk(capital)
	messages := ask.With("max_tokens", 50)
	echo := useEcho["tools"]
	claudeEcho := []harness.Fields{{"name": "echo", "input_schema": weather}}
	pixels := picture(t, color.White)["data_url"].(string)
	_, pixel, _ := strings.Cut(pixels, ",")
	says := func(part harness.Fields) []harness.Fields {
		return []harness.Fields{{"role": "user", "content": []any{part}}}
	}
	schema := harness.Fields{"type": "json_schema", "json_schema": harness.Fields{"name": "c", "schema": weather}}
	for name, c := range map[string]struct {
		path    string
		request harness.Fields
		field   string
		in      dialect
	}{
		"log probabilities":               {harness.ChatPath, ask.With("logprobs", true), "logprobs", openAIStyle},
		"the likeliest tokens":            {harness.ChatPath, ask.With("logprobs", true).With("top_logprobs", 2), "", openAIStyle},
		"JSON":                            {harness.ChatPath, ask.With("response_format", harness.Fields{"type": "json_object"}), "response_format", openAIStyle},
		"a schema":                        {harness.ChatPath, ask.With("response_format", schema), "response_format", openAIStyle},
		"a schema, v0":                    {v0ChatPath, ask.With("response_format", schema), "response_format", nativeStyle},
		"a call":                          {harness.ChatPath, useEcho.With("tool_choice", "required"), "tool_choice", openAIStyle},
		"a call of a function":            {harness.ChatPath, useEcho.With("tool_choice", harness.Fields{"type": "function", "function": harness.Fields{"name": "echo"}}), "tool_choice", openAIStyle},
		"an image":                        {harness.ChatPath, ask.With("messages", says(harness.Fields{"type": "image_url", "image_url": harness.Fields{"url": pixels}})), "messages", openAIStyle},
		"a token that doesn't exist":      {harness.ChatPath, ask.With("logit_bias", harness.Fields{"9999999": 5}), "logit_bias", openAIStyle},
		"a token id":                      {completionsPath, complete([]int{285, 379}), "prompt", openAIStyle},
		"no prompt":                       {completionsPath, complete(""), "prompt", openAIStyle},
		"a suffix":                        {completionsPath, complete(capitalIs).With("suffix", "."), "suffix", openAIStyle},
		"log probabilities of a text":     {completionsPath, complete(capitalIs).With("logprobs", 1), "logprobs", openAIStyle},
		"log probabilities of a text, v0": {completionsPathV0, complete(capitalIs).With("logprobs", 1), "logprobs", nativeStyle},
		"embeddings":                      {embeddingsPath, harness.Fields{"model": harness.Model, "input": "a"}, "model", openAIStyle},
		"a ranking":                       {"/v1/rerank", harness.Fields{"model": harness.Model, "query": "a", "documents": []string{"b"}}, "model", openAIStyle},
		"a response with a schema":        {harness.RespondPath, respond.With("text", cityFormat), "text", openAIStyle},
		"a response with a call":          {harness.RespondPath, respond.With("tools", []any{sayFunction}).With("tool_choice", "required"), "tool_choice", openAIStyle},
		"a response to an image":          {harness.RespondPath, respond.With("input", says(harness.Fields{"type": "input_image", "image_url": pixels})), "input", openAIStyle},
		"a response with probabilities":   {harness.RespondPath, respond.With("top_logprobs", 2).With("include", []string{"message.output_text.logprobs"}), "", openAIStyle},
		"a chat about an image":           {harness.NativeChatPath, harness.NativeAsk("").With("input", []any{harness.Fields{"type": "image", "data_url": pixels}}), "input", nativeStyle},
		"a message with a call":           {"/v1/messages", messages.With("tools", claudeEcho).With("tool_choice", harness.Fields{"type": "any"}), "tool_choice", anthropicStyle},
		"a message with a named call":     {"/v1/messages", messages.With("tools", claudeEcho).With("tool_choice", harness.Fields{"type": "tool", "name": "echo"}), "tool_choice", anthropicStyle},
		"a message that begins the answer": {"/v1/messages", messages.With("messages", []harness.Fields{
			{"role": "user", "content": capital}, {"role": "assistant", "content": capitalIs},
		}), "messages", anthropicStyle},
		"a message with an image": {"/v1/messages", messages.With("messages", says(harness.Fields{
			"type": "image", "source": harness.Fields{"type": "base64", "media_type": "image/png", "data": pixel},
		})), "messages", anthropicStyle},
	} {
		t.Run(name, func(t *testing.T) {
			request := c.request
			if c.request["tool_choice"] != nil && c.request["tools"] == nil {
				request = request.With("tools", echo)
			}
			c.in(t, s.In(t).Post(c.path, request).Want(t, http.StatusBadRequest), c.field)
			if engines := s.Engines(); len(engines) > 0 {
				t.Errorf("there run %v", engines)
			}
		})
	}
	if log := s.Log(); strings.Contains(log, "engine launched") {
		t.Errorf("an engine was launched:\n%s", log)
	}
	if a := s.Chat(ask); a.Content != paris {
		t.Errorf("after all of them: %q", a.Content)
	}
}

// TestMLX_RefusesModelsThatItCannotRun before anything is started, however the load is asked for.
func TestMLX_RefusesModelsThatItCannotRun(t *testing.T) {
	t.Parallel()
	h := harness.NewMLXHome(t)
	const key = "somebody/program"
	folder := h.AddMLX(key)
	config := filepath.Join(folder, "config.json")
	content, err := os.ReadFile(config)
	if err == nil {
		own := strings.Replace(string(content), "{", `{"model_file":"own.py",`, 1)
		err = os.WriteFile(config, []byte(own), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := harness.Start(h, mlxLM.with(harness.Config{}))
	load := s.Post(harness.LoadPath, harness.Fields{"model": key}).Want(t, http.StatusBadRequest)
	wantNativeError(t, load, "invalid_request")
	chat := s.Post(harness.ChatPath, harness.Ask(capital).With("model", key)).Want(t, http.StatusBadRequest)
	wantOpenAIError(t, chat, "invalid_request_error", "unsupported_model")
	for _, r := range []harness.Reply{load, chat} {
		if strings.Contains(r.Body, h.Dir) {
			t.Errorf("a folder of the server: %s", r.Body)
		}
	}
	if log := s.Log(); strings.Contains(log, "engine launched") {
		t.Errorf("an engine was launched:\n%s", log)
	}
}

func TestMLX_WithoutAnEngineSaysWhatToDo(t *testing.T) {
	t.Parallel()
	without := harness.NewBareHome(t)
	without.AddMLX(harness.Model)
	s := harness.Start(without, harness.Config{})
	if got := s.Get("/api/v1/models").Get("models.0"); got.Get("key").Str != harness.Model || got.Get("format").Str != "mlx" {
		t.Errorf("the model is listed as %s", got.Raw)
	}
	for _, request := range []harness.Fields{harness.Ask(capital), harness.Ask(capital).With("stream", true)} {
		reply := s.Post(harness.ChatPath, request).Want(t, http.StatusServiceUnavailable)
		wantOpenAIError(t, reply, "server_error", "model_load_failed")
		for _, text := range []string{"lmcaddy runtime get mlx-lm", "engine mlx_lm"} {
			if !strings.Contains(reply.Get("error.message").Str, text) {
				t.Errorf("the message doesn't say %q: %s", text, reply.Body)
			}
		}
	}
}
