package catalog

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMLX_Abilities: what a model can do is what mlx_lm understands of it.
func TestMLX_Abilities(t *testing.T) {
	t.Parallel()
	const thinks = `{"added_tokens":[{"content":"<think>"},{"content":"</think>"}]}`
	asText := func(template string) []byte {
		text, err := json.Marshal(map[string]any{"chat_template": template})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	type abilities struct {
		tools     bool
		reasoning string
		context   int
	}
	for name, tt := range map[string]struct {
		files files
		want  abilities
	}{
		"calls in JSON":              {files{"tokenizer_config.json": asText("{{ tools }}<tool_call>{{ tool_call.name }}")}, abilities{tools: true}},
		"calls in JSON otherwise":    {files{"tokenizer_config.json": asText("{{ tools }}<tool_call>{{ c.function.name }}")}, abilities{}},
		"no tools":                   {files{"tokenizer_config.json": asText("<tool_call>{{ tool_call.name }}")}, abilities{}},
		"calls of Qwen3-Coder":       {files{"tokenizer_config.json": asText("{{ tools }}{{ '<tool_call>\\n<function=' }}")}, abilities{tools: true}},
		"calls of Mistral":           {files{"tokenizer_config.json": asText("{{ tools }}[TOOL_CALLS]")}, abilities{tools: true}},
		"one mark of Gemma":          {files{"tokenizer_config.json": asText("{{ tools }}<|tool_call>")}, abilities{}},
		"both marks of Gemma":        {files{"tokenizer_config.json": asText("{{ tools }}<|tool_call><tool_call|>")}, abilities{tools: true}},
		"calls that it doesn't know": {files{"tokenizer_config.json": asText("{{ tools }}<|python_tag|>")}, abilities{}},
		"calls that are named": {
			files{"tokenizer_config.json": []byte(`{"chat_template":"{{ tools }}","tool_parser_type":"json_tools"}`)}, abilities{tools: true},
		},
		"calls that are not to be found": {
			files{"tokenizer_config.json": []byte(`{"chat_template":"{{ tools }}[TOOL_CALLS]","tool_parser_type":null}`)}, abilities{},
		},
		"several templates": {
			files{"tokenizer_config.json": []byte(`{"chat_template":[{"name":"default","template":"{{ tools }}[TOOL_CALLS]"}]}`)}, abilities{},
		},
		"several templates, and how calls are written": {
			files{"tokenizer_config.json": []byte(`{"chat_template":[{"name":"default","template":"{{ tools }}"}],"tool_parser_type":"mistral"}`)},
			abilities{tools: true},
		},
		"a template in Python": {
			files{
				"tokenizer_config.json": []byte(`{"chat_template_type":"deepseek_v32","tool_parser_type":"x"}`), "tokenizer.json": []byte(thinks),
			}, abilities{tools: true, reasoning: "off on"},
		},
		"a file that comes before": {
			files{"chat_template.jinja": []byte("{{ tools }}[TOOL_CALLS]"), "tokenizer_config.json": asText("x")}, abilities{tools: true},
		},
		"thoughts with a switch": {
			files{"tokenizer_config.json": asText("{{ enable_thinking }}"), "tokenizer.json": []byte(thinks)}, abilities{reasoning: "off on"},
		},
		"thoughts always": {
			files{"tokenizer_config.json": asText("{{ c.split('</think>') }}"), "tokenizer.json": []byte(thinks)}, abilities{reasoning: "on"},
		},
		"thoughts with efforts": {
			files{"tokenizer_config.json": asText("<think>{{ reasoning_effort }}"), "tokenizer.json": []byte(thinks)}, abilities{reasoning: "low medium high"},
		},
		"the tokens without a use": {files{"tokenizer_config.json": asText("x"), "tokenizer.json": []byte(thinks)}, abilities{}},
		"a switch without tokens":  {files{"tokenizer_config.json": asText("{{ enable_thinking }}<think>")}, abilities{}},
		"tokens at the end": {
			files{
				"tokenizer_config.json": asText("{{ enable_thinking }}"),
				"tokenizer.json":        []byte(`{"model":{"vocab":{"a":[1,{"b":"}"}]}},"added_tokens":[{"content":"<|channel>"},{"content":"<channel|>"}]}`),
			}, abilities{reasoning: "off on"},
		},
		"tokens in the other file": {
			files{"tokenizer_config.json": []byte(`{"chat_template":"{{ enable_thinking }}","added_tokens_decoder":{"1":{"content":"<think>"},"2":{"content":"</think>"}}}`)},
			abilities{reasoning: "off on"},
		},
		"the length of the tokenizer": {files{"tokenizer_config.json": []byte(`{"model_max_length":512}`)}, abilities{context: 512}},
		"no length of the tokenizer":  {files{"tokenizer_config.json": []byte(`{"model_max_length":1000000000000000019884624838656}`)}, abilities{}},
		"odd values": {
			files{
				"tokenizer_config.json": []byte(`{"chat_template":5,"chat_template_type":[],"tool_parser_type":{},"model_max_length":"x","added_tokens_decoder":"x"}`),
				"tokenizer.json":        []byte(`{"added_tokens":7`),
			}, abilities{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, root := catalogOf(t, nil)
			setFormats(c, FormatMLX)
			base := files{
				"chat_template.jinja": nil, "tokenizer.json": nil,
				"config.json": []byte(`{"model_type":"x","quantization":{"bits":4}}`),
			}
			maps.Copy(base, tt.files)
			for rel, content := range mlxModel(base) {
				write(t, root, "a/b/"+rel, content)
			}
			all := models(t, c)
			if len(all) != 1 {
				t.Fatalf("%d models", len(all))
			}
			m := all[0]
			got := abilities{tools: m.ToolUse, context: m.MaxContextLength}
			for i, option := range m.Reasoning.Options {
				if i > 0 {
					got.reasoning += " "
				}
				got.reasoning += option
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(abilities{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
