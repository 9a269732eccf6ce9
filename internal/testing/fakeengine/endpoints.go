package fakeengine

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// endpoints are the endpoints that don't generate, by method and path.
var endpoints = map[string]func(*server, http.ResponseWriter, *http.Request, string){
	"GET /health":                            (*server).health,
	"GET /v1/health":                         (*server).health,
	"GET /v1/models":                         (*server).models,
	"GET /models":                            (*server).models,
	"GET /props":                             (*server).props,
	"GET /slots":                             (*server).listSlots,
	"POST /tokenize":                         (*server).tokenize,
	"POST /detokenize":                       (*server).detokenize,
	"POST /apply-template":                   (*server).applyTemplate,
	"POST /v1/chat/completions/input_tokens": (*server).inputTokens,
	"POST /v1/responses/input_tokens":        (*server).inputTokens,
}

func (v *server) health(w http.ResponseWriter, _ *http.Request, _ string) {
	writeBody(w, http.StatusOK, []byte(`{"status":"ok"}`))
}

func (v *server) preflight(w http.ResponseWriter, _ *http.Request, _ string) {
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Access-Control-Allow-Credentials", "true")
	w.Header().Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	w.Header().Set("Access-Control-Allow-Headers", "*")
	w.WriteHeader(http.StatusOK)
}

// object is a JSON object whose key order doesn't matter.
type object map[string]any

// modelInfo describes the loaded model, in /v1/models and in the ready line. All but its name and context is invented.
func (v *server) modelInfo() object {
	s := v.script()
	input := []string{"text"}
	if v.args.mmproj != "" {
		input = append(input, "image")
	}
	return object{
		"id": v.args.id(), "aliases": []string{v.args.id()}, "tags": []string{}, "object": "model",
		"architecture": object{"input_modalities": input, "output_modalities": []string{"text"}},
		"created":      v.created, "owned_by": "llamacpp",
		"meta": object{
			"vocab_type": 2, "n_vocab": vocabulary, "n_ctx": v.context, "n_ctx_train": s.trainContext(), "n_embd": dimensions,
			"n_params": 1918080, "size": 3839616, "ftype": "F16",
		},
	}
}

func (v *server) models(w http.ResponseWriter, _ *http.Request, _ string) {
	data, named := []object{}, []object{}
	if v.args.model != "" {
		data = append(data, v.modelInfo())
		named = append(named, object{"name": v.args.id(), "model": v.args.id(), "type": "model", "capabilities": []string{"completion"}})
	}
	writeBody(w, http.StatusOK, encode(object{"models": named, "object": "list", "data": data}))
}

func (v *server) props(w http.ResponseWriter, _ *http.Request, _ string) {
	writeBody(w, http.StatusOK, encode(object{
		"default_generation_settings": object{
			"params": object{"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1, "speculative.types": "none"},
			"n_ctx":  v.context,
		},
		"total_slots": v.slots.all, "model_alias": v.args.id(), "model_ftype": "F16", "model_path": v.args.model,
		"modalities":     object{"vision": v.args.mmproj != "", "video": false, "audio": false},
		"endpoint_slots": !v.args.noSlots, "endpoint_props": false, "endpoint_metrics": false,
		"chat_template": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
		"chat_template_caps": object{
			"supports_object_arguments": false, "supports_parallel_tool_calls": true, "supports_preserve_reasoning": true,
			"supports_reasoning_effort": false, "supports_string_content": true, "supports_system_role": true,
			"supports_tool_calls": true, "supports_tools": true, "supports_typed_content": false,
		},
		"bos_token": "<|im_start|>", "eos_token": "<|im_end|>",
		"build_info": v.script().fingerprint(), "is_sleeping": false, "cors_proxy_enabled": false,
	}))
}

func (v *server) listSlots(w http.ResponseWriter, r *http.Request, _ string) {
	if v.args.noSlots {
		message := "This server does not support slots endpoint. Start it with `--slots`"
		(&apiError{Code: http.StatusNotImplemented, Message: message, Type: "not_supported_error"}).write(w)
		return
	}
	free := v.slots.isFree()
	if r.URL.Query().Has("fail_on_no_slot") && !slices.Contains(free, true) {
		(&apiError{Code: http.StatusServiceUnavailable, Message: "no slot available", Type: "unavailable_error"}).write(w)
		return
	}
	all, told := make([]object, len(free)), v.slots.told()
	for id := range free {
		all[id] = object{"id": id, "n_ctx": v.context, "speculative": v.args.draft != "", "is_processing": !free[id]}
		if s := told[id]; s.task > 0 {
			all[id]["id_task"], all[id]["n_prompt_tokens"], all[id]["n_prompt_tokens_processed"] = s.task, s.prompt, s.processed
			all[id]["next_token"] = []object{{"n_decoded": s.spoke}}
		}
	}
	writeBody(w, http.StatusOK, encode(all))
}

const (
	vocabulary = 32000
	dimensions = 8
)

// tokenID returns a stable number for a word.
func tokenID(word string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(word))
	return int(h.Sum32() % vocabulary)
}

func (v *server) tokenize(w http.ResponseWriter, _ *http.Request, body string) {
	pieces := gjson.Get(body, "with_pieces").Bool()
	tokens := []any{}
	for _, word := range fakekit.Words(gjson.Get(body, "content").String()) {
		if pieces {
			tokens = append(tokens, object{"id": tokenID(word), "piece": word})
		} else {
			tokens = append(tokens, tokenID(word))
		}
	}
	writeBody(w, http.StatusOK, encode(object{"tokens": tokens}))
}

// detokenize makes up a word for each number, since the fake model has no vocabulary.
func (v *server) detokenize(w http.ResponseWriter, _ *http.Request, body string) {
	var text strings.Builder
	for _, token := range gjson.Get(body, "tokens").Array() {
		text.WriteString("<" + token.Raw + ">")
	}
	writeBody(w, http.StatusOK, encode(object{"content": text.String()}))
}

// applyTemplate renders all that a chat has, with a thought that is left out if the model's file names a switch for that.
func (v *server) applyTemplate(w http.ResponseWriter, _ *http.Request, body string) {
	var b strings.Builder
	b.WriteString(gjson.Get(body, "tools").Raw)
	for _, m := range gjson.Get(body, "messages").Array() {
		fmt.Fprintf(&b, "<|im_start|>%s\n%s%s%s<|im_end|>\n", m.Get("role").Str, m.Get("reasoning_content").Str, textOf(m), m.Get("tool_calls").Raw)
	}
	b.WriteString("<|im_start|>assistant\n")
	const name = "enable_thinking"
	if gjson.Get(body, "chat_template_kwargs."+name).Type == gjson.False && v.names(name) {
		b.WriteString("<think>\n\n</think>\n\n")
	}
	writeBody(w, http.StatusOK, encode(object{"prompt": b.String()}))
}

// names reports whether the header of the model's file has a text.
func (v *server) names(text string) bool {
	f, err := os.Open(v.args.model)
	if err != nil {
		return false
	}
	defer f.Close()
	header, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	return bytes.Contains(header, []byte(text))
}

func (v *server) inputTokens(w http.ResponseWriter, _ *http.Request, body string) {
	_, tokens := render(body)
	writeBody(w, http.StatusOK, encode(object{"input_tokens": tokens, "object": "response.input_tokens"}))
}
