package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// chatOf is a template whose answers begin with something that depends on a condition for thinking.
func chatOf(before, thinks string) string {
	return before + "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content | replace('/no_think', '') }}<|im_end|>\n{% endfor %}" +
		"{% if add_generation_prompt %}<|im_start|>assistant\n{% if " + thinks + " %}<think>\n{% else %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
}

// thinkingTemplates have a switch each.
var thinkingTemplates = map[string]struct {
	template, options, byDefault string
}{
	"enable-on": {chatOf("", "enable_thinking is not defined or enable_thinking"), `["off","on"]`, "on"},
	"enable-off": { // llama-server sets the switch by itself only for templates with thoughts
		"{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[rules] Deliberation is {{ 'on, and at length' if enable_thinking else 'off' }}.\n[assistant] ",
		`["off","on"]`, "off",
	},
	"thinking": {chatOf("", "thinking is defined and thinking"), `["off","on"]`, "off"},
	"budget":   {chatOf("", "thinking_budget is not defined or thinking_budget > 0"), `["off","on"]`, "on"},
	"line": {
		chatOf("{% set ns = namespace(thinks=true) %}{% for m in messages %}{% if '/no_think' in m.content %}{% set ns.thinks = false %}{% endif %}{% endfor %}", "ns.thinks"),
		`["off","on"]`, "on",
	},
	"effort": {
		chatOf("{% if reasoning_effort is defined and reasoning_effort not in ['none', 'high'] %}{{ raise_exception('No such effort.') }}{% endif %}",
			"reasoning_effort is not defined or reasoning_effort == 'high'"), `["off","high"]`, "high",
	},
}

// TestThinking_IsSetInTheWordsOfEachTemplate: off is off and on is on, whatever the switch is called, in all dialects, and so from the first
// request on.
func TestThinking_IsSetInTheWordsOfEachTemplate(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	for name, tt := range thinkingTemplates {
		shape := randommodel.Dense
		shape.Template = tt.template
		h.AddRandom("made/"+name, shape, 1)
	}
	s := harness.Start(h, harness.Config{LM: []string{"max_loaded 2"}})
	for name, tt := range thinkingTemplates {
		t.Run(name, func(t *testing.T) {
			wantWordsOf(t, s.In(t), "made/"+name, tt.options, tt.byDefault)
			if name == "enable-on" {
				wantEndOfThought(t, s.In(t), "made/"+name)
			}
		})
	}
}

// wantEndOfThought checks that a model that would think for ever answers within the limit.
func wantEndOfThought(t *testing.T, s *harness.Server, key string) {
	t.Helper()
	ask := harness.Fields{"model": key, "input": "Hi", "max_output_tokens": 40, "reasoning": harness.Fields{"effort": "high"}}
	thought := s.Post(harness.RespondPath, ask).Want(t, 200)
	if n := thought.Get("usage.output_tokens_details.reasoning_tokens").Int(); n < 25 || n > 33 || thought.Get(`output.#(type=="message").content.0.text`).Str == "" {
		t.Errorf("%d tokens of thinking: %s", n, thought.Body)
	}
	thought = s.Post("/v1/messages", harness.Fields{
		"model": key, "max_tokens": 40, "thinking": harness.Fields{"type": "enabled", "budget_tokens": 39}, "messages": []harness.Fields{{"role": "user", "content": "Hi"}},
	}).Want(t, 200)
	if thought.Get("content.#").Int() != 2 || thought.Get("content.1.text").Str == "" {
		t.Errorf("the budget leaves no answer: %s", thought.Body)
	}
}

// TestMLX_SetsThinkingInTheWordsOfTheTemplate as with the other engine, though the server itself can't show its prompts.
func TestMLX_SetsThinkingInTheWordsOfTheTemplate(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"thinking", "budget", "line"} {
		t.Run(name, func(t *testing.T) {
			tt := thinkingTemplates[name]
			h := harness.NewBareHome(t)
			h.Path = os.Getenv("PATH")
			file := filepath.Join(h.AddMLX(harness.Model), "chat_template.jinja")
			if err := os.WriteFile(file, []byte(tt.template), 0o600); err != nil {
				t.Fatal(err)
			}
			wantWordsOf(t, harness.Start(h, harness.Config{MLX: harness.MLXWithTemplate(t, file)}), harness.Model, tt.options, tt.byDefault)
		})
	}
}

// wantWordsOf checks that a model thinks, or doesn't, as each dialect asks for, and that what it offers is listed.
func wantWordsOf(t *testing.T, s *harness.Server, key, options, byDefault string) {
	t.Helper()
	words := gjson.Parse(options).Array()
	offs, ons, plain := promptsOf(s, key, words[len(words)-1].Str)
	off, on := offs["native"], ons["native"]
	if off == on {
		t.Errorf("prompts have %d tokens whether or not the model is to think", off)
	}
	for dialect, n := range offs {
		if n != off {
			t.Errorf("%s, off: %d tokens, want %d", dialect, n, off)
		}
	}
	for dialect, n := range ons {
		if n != on {
			t.Errorf("%s, on: %d tokens, want %d", dialect, n, on)
		}
	}
	if want := map[bool]int{true: off, false: on}[byDefault == "off"]; plain != want {
		t.Errorf("by default: %d tokens, want %d", plain, want)
	}
	listed := s.Get("/api/v1/models").Get(`models.#(key=="` + key + `").capabilities.reasoning`)
	if listed.Get("allowed_options").Raw != options || listed.Get("default").Str != byDefault {
		t.Errorf("listed: %s, want %s and %s", listed.Raw, options, byDefault)
	}
	refused := s.Post("/api/v1/chat", harness.Fields{"model": key, "input": "Hi", "reasoning": "medium"}).Want(t, 400)
	if refused.Get("error.param").Str != "reasoning" || refused.Get("error.code").Str != "invalid_value" {
		t.Errorf("%s", refused.Body)
	}
}

// promptsOf returns how many tokens prompts have without thinking, with it, and without a choice. The first request loads the model.
func promptsOf(s *harness.Server, model, most string) (offs, ons map[string]int, plain int) {
	const user = "Hi"
	messages := []harness.Fields{{"role": "user", "content": user}}
	counted := func(where, field string, request harness.Fields) int {
		request["model"] = model
		return int(s.Post(where, request).Want(s.T, 200).Get(field).Int())
	}
	native := func(reasoning string) int {
		return counted("/api/v1/chat", "stats.input_tokens", harness.Fields{"input": user, "reasoning": reasoning, "max_output_tokens": 1})
	}
	chat := func(more harness.Fields) int {
		request := harness.Fields{"messages": messages, "max_tokens": 1}
		maps.Copy(request, more)
		return counted(harness.ChatPath, "usage.prompt_tokens", request)
	}
	count := func(more harness.Fields) int {
		request := harness.Fields{"messages": messages, "max_tokens": 2000}
		maps.Copy(request, more)
		return counted("/v1/messages/count_tokens", "input_tokens", request)
	}
	responses := func(effort string) int {
		return counted("/v1/responses", "usage.input_tokens", harness.Fields{"input": user, "max_output_tokens": 16, "reasoning": harness.Fields{"effort": effort}})
	}
	ollama := func(thinks bool) int {
		return counted("/api/chat", "prompt_eval_count", harness.Fields{
			"messages": messages, "think": thinks, "stream": false, "options": harness.Fields{"num_predict": 1},
		})
	}
	offs = map[string]int{
		"chat": chat(harness.Fields{"reasoning_effort": "none"}), "native": native("off"), "messages": count(nil), "responses": responses("none"), "Ollama": ollama(false),
		"a switch": chat(harness.Fields{"chat_template_kwargs": harness.Fields{"enable_thinking": false}}),
	}
	ons = map[string]int{
		"chat": chat(harness.Fields{"reasoning_effort": "high"}), "native": native(most), "responses": responses("high"), "Ollama": ollama(true),
		"messages": count(harness.Fields{"thinking": harness.Fields{"type": "enabled", "budget_tokens": 1024}}),
		"a switch": chat(harness.Fields{"chat_template_kwargs": harness.Fields{"enable_thinking": true}}),
	}
	return offs, ons, chat(nil)
}
