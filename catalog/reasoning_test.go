package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog/chattemplate"
)

func TestReasoning(t *testing.T) {
	t.Parallel()
	var (
		none   = Reasoning{}
		always = Reasoning{Options: []string{"on"}, Default: "on"}
		both   = Reasoning{Options: []string{"off", "on"}, Default: "on"}
		levels = Reasoning{Options: []string{"low", "medium", "high"}, Default: "medium"}
	)
	for name, tt := range map[string]struct {
		template string
		want     Reasoning
	}{
		"no template":     {"", none},
		"a plain one":     {"{% for m in messages %}{{ m.content }}{% endfor %}", none},
		"a switch":        {"{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>{% endif %}", both},
		"a switch alone":  {"{{ '/no_think' if not enable_thinking }}", both},
		"only a remark":   {"{# enable_thinking and <think> are gone #}{{ messages }}", none},
		"always":          {"{{ messages }}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}", always},
		"another tag":     {"[SYSTEM_PROMPT]think: [THINK]…[/THINK]{{ messages }}", always},
		"a channel":       {"<|channel|>analysis<|message|>", always},
		"what is cut off": {"{{ content.split('</think>')[-1] }}", none},
		"an effort": {
			`{%- if reasoning_effort is not defined %}{%- set reasoning_effort = "medium" %}{%- endif %}{{- "Reasoning: " + reasoning_effort + "\n\n" }}`, levels,
		},
		"an effort that is passed on": {`{%- if reasoning_effort is defined %}{{- "Reasoning: " + reasoning_effort + '\n' }}{% endif %}<think>`, levels},
		"a switch and efforts": {
			`{% if not enable_thinking %}{% elif reasoning_effort in ("low", "medium", "xhigh") %}{% endif %}`,
			Reasoning{Options: []string{"off", "low", "medium", "high"}, Default: "medium"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, chattemplate.Reasoning(tt.template)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// An embedding model has no reasoning, whatever its template says.
			c, _ := catalogOf(t, files{
				"p/chat/x.gguf":  llama("x", map[string]any{"tokenizer.chat_template": tt.template}).bytes(),
				"p/embed/x.gguf": llama("x", map[string]any{"tokenizer.chat_template": tt.template, "llama.pooling_type": uint32(1)}).bytes(),
			})
			all := models(t, c)
			if diff := cmp.Diff([]Reasoning{tt.want, none}, []Reasoning{all[0].Reasoning, all[1].Reasoning}); diff != "" {
				t.Errorf("of files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTemplate_IsToldApartFromOthers(t *testing.T) {
	t.Parallel()
	of := func(meta map[string]any) []byte { return llama("x", meta).bytes() }
	const key = "tokenizer.chat_template"
	c, _ := catalogOf(t, files{
		"p/a/x.gguf": of(map[string]any{key: "{{ messages }}"}), "p/b/x.gguf": of(map[string]any{key: "{{ messages }}", "general.description": "Another"}),
		"p/c/x.gguf": of(map[string]any{key: "{{ tools }}"}), "p/d/x.gguf": of(map[string]any{key: "{{ messages }}", key + ".tool_use": "{{ tools }}"}),
		"p/e/x.gguf": of(nil),
	})
	all := models(t, c)
	if all[0].Template != all[1].Template || all[4].Template != "" {
		t.Errorf("%q and %q, want the same; %q, want none", all[0].Template, all[1].Template, all[4].Template)
	}
	seen := map[string]bool{}
	for _, i := range []int{0, 2, 3, 4} {
		seen[all[i].Template] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d different templates, want 4", len(seen))
	}
}
