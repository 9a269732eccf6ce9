package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// withTemplate returns a shape whose chats have a template of testdata/templates.
func withTemplate(t *testing.T, name string) randommodel.Shape {
	t.Helper()
	template, err := os.ReadFile(filepath.Join("testdata", "templates", name+".jinja"))
	if err != nil {
		t.Fatal(err)
	}
	shape := randommodel.Dense
	shape.Template = string(template)
	return shape
}

// forcedTemplates write calls in each way that llama-server combines differently with the format of an answer: with one it made no
// grammar at all, and with others one that it couldn't read. The last has no tools.
var forcedTemplates = []string{"xml", "brackets", "lists", "plain"}

func TestDemandedCall_IsMadeWhateverTheTemplateSaysOfTools(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	for i, name := range forcedTemplates {
		h.AddRandom("test/"+name, withTemplate(t, name), uint64(i))
	}
	s := harness.Start(h, harness.Config{})
	function := harness.Fields{"name": "get_weather", "parameters": weather}
	for _, name := range forcedTemplates {
		chat := harness.Ask("Hello").With("model", "test/"+name).With("max_tokens", 2000).With("tools", []harness.Fields{{"type": "function", "function": function}})
		for choice, request := range map[string]harness.Fields{
			"required": chat.With("tool_choice", "required"),
			"named":    chat.With("tool_choice", harness.Fields{"type": "function", "function": harness.Fields{"name": "get_weather"}}),
		} {
			t.Run(name+", "+choice, func(t *testing.T) {
				s := s.In(t)
				for how, a := range map[string]harness.Answer{"in one piece": s.Chat(request), "streamed": s.Stream(request).Answer()} {
					if a.Finish != "tool_calls" || a.Content != "" || len(a.Calls) != 1 || a.Calls[0].Name != "get_weather" {
						t.Fatalf("%s: %+v", how, a)
					}
					wantCity(t, a.Calls[0].Arguments)
				}
			})
		}
		t.Run(name+", messages", func(t *testing.T) {
			r := s.In(t).Post("/v1/messages", harness.Ask("Hello").With("model", "test/"+name).With("max_tokens", 2000).
				With("tools", []harness.Fields{{"name": "get_weather", "input_schema": weather}}).With("tool_choice", harness.Fields{"type": "any"})).Want(t, 200)
			if r.Get("stop_reason").Str != "tool_use" || r.Get("content.#").Int() != 1 {
				t.Fatal(r.Body)
			}
			wantCity(t, r.Get("content.0.input").Raw)
		})
		t.Run(name+", responses", func(t *testing.T) {
			r := s.In(t).Post("/v1/responses", harness.Fields{
				"model": "test/" + name, "input": "Hello", "temperature": 0, "max_output_tokens": 2000, "tool_choice": "required",
				"tools": []harness.Fields{function.With("type", "function")},
			}).Want(t, 200)
			if r.Get("output.#").Int() != 1 || r.Get("output.0.type").Str != "function_call" {
				t.Fatal(r.Body)
			}
			wantCity(t, r.Get("output.0.arguments").Str)
		})
		t.Run(name+", a format beside tools", func(t *testing.T) { wantFormatOrCall(t, s.In(t), "test/"+name, function) })
	}
}

// wantFormatOrCall has a model answer in a format, with a tool that it may call instead. Which it does is up to the model.
func wantFormatOrCall(t *testing.T, s *harness.Server, model string, function harness.Fields) {
	t.Helper()
	answer := harness.Fields{
		"type": "object", "properties": harness.Fields{"mood": harness.Fields{"enum": []string{"good", "bad"}}},
		"required": []string{"mood"}, "additionalProperties": false,
	}
	request := harness.Ask("Hello").With("model", model).With("max_tokens", 2000).
		With("tools", []harness.Fields{{"type": "function", "function": function}}).
		With("response_format", harness.Fields{"type": "json_schema", "json_schema": harness.Fields{"name": "m", "schema": answer}})
	wantEither := func(how, text, arguments string) {
		if arguments != "" {
			wantCity(t, arguments)
		} else if text = strings.Join(strings.Fields(text), ""); text != `{"mood":"good"}` && text != `{"mood":"bad"}` {
			t.Errorf("%s: %q", how, text)
		}
	}
	for how, a := range map[string]harness.Answer{"in one piece": s.Chat(request), "streamed": s.Stream(request).Answer()} {
		arguments := ""
		if len(a.Calls) > 0 {
			arguments = a.Calls[0].Arguments
		}
		wantEither(how, a.Content, arguments)
	}
	r := s.Post("/v1/messages", harness.Ask("Hello").With("model", model).With("max_tokens", 2000).
		With("tools", []harness.Fields{{"name": "get_weather", "input_schema": weather}}).
		With("output_config", harness.Fields{"format": harness.Fields{"type": "json_schema", "schema": answer}})).Want(t, 200)
	wantEither("messages", r.Get("content.0.text").Str, r.Get("content.0.input").Raw)
	r = s.Post("/v1/responses", harness.Fields{
		"model": model, "input": "Hello", "temperature": 0, "max_output_tokens": 2000, "tools": []harness.Fields{function.With("type", "function")},
		"text": harness.Fields{"format": harness.Fields{"type": "json_schema", "name": "m", "schema": answer}},
	}).Want(t, 200)
	wantEither("responses", r.Get(`output.#(type=="message").content.0.text`).Str, r.Get(`output.#(type=="function_call").arguments`).Str)
	r = s.Post("/api/chat", harness.Ask("Hello").With("model", model).With("stream", false).With("format", answer).With("options", harness.Fields{"num_predict": 2000, "temperature": 0}).
		With("tools", []harness.Fields{{"type": "function", "function": function}})).Want(t, 200)
	wantEither("Ollama's", r.Get("message.content").Str, r.Get("message.tool_calls.0.function.arguments").Raw)
}

// TestUnparsed_IsContent: these templates have the model write everything between tags, which one with random weights never does, so that
// llama-server ends its answers with an error.
func TestUnparsed_IsContent(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	templates := []string{"channels", "marked"}
	for i, name := range templates {
		h.AddRandom("test/"+name, withTemplate(t, name), uint64(i))
	}
	s := harness.Start(h, harness.Config{})
	function := harness.Fields{"name": "get_weather", "parameters": weather}
	for _, name := range templates {
		for sampled, temperature := range map[string]float64{"greedy": 0, "sampled": 1} {
			t.Run(name+", "+sampled, func(t *testing.T) {
				s := s.In(t)
				request := harness.Ask("Hello").With("model", "test/"+name).With("temperature", temperature).With("max_tokens", 20).
					With("tools", []harness.Fields{{"type": "function", "function": function}})
				whole, streamed := s.Chat(request), s.Stream(request).Answer()
				for how, a := range map[string]harness.Answer{"in one piece": whole, "streamed": streamed} {
					if a.Content == "" || a.Finish != "length" || len(a.Calls) > 0 {
						t.Errorf("%s: %+v", how, a)
					}
				}
				if temperature == 0 && whole.Content != streamed.Content {
					t.Errorf("in one piece %q, streamed %q", whole.Content, streamed.Content)
				}
				r := s.Post("/v1/messages", harness.Ask("Hello").With("model", "test/"+name).With("temperature", temperature).With("max_tokens", 20).
					With("tools", []harness.Fields{{"name": "get_weather", "input_schema": weather}})).Want(t, 200)
				if r.Get("content.0.text").Str == "" || r.Get("stop_reason").Str != "max_tokens" {
					t.Error(r.Body)
				}
				r = s.Post("/v1/responses", harness.Fields{
					"model": "test/" + name, "input": "Hello", "temperature": temperature, "max_output_tokens": 20, "tools": []harness.Fields{function.With("type", "function")},
				}).Want(t, 200)
				if r.Get(`output.#(type=="message").content.0.text`).Str == "" {
					t.Error(r.Body)
				}
			})
		}
	}
}

// TestTemplate_RefusesInItsOwnWords: without the place in the template, which is of no use to a client.
func TestTemplate_RefusesInItsOwnWords(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	shape := randommodel.Dense
	shape.Template = `{%- for m in messages %}{%- if m.content is string and 'bad' in m.content %}{{- raise_exception('Nothing bad is said here: ' + m.content) }}{%- endif %}` +
		`{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}`
	h.AddRandom("test/refusing", shape, 1)
	s := harness.Start(h, harness.Config{})
	for path, request := range map[string]harness.Fields{
		"/v1/chat/completions": harness.Ask("bad").With("max_tokens", 5),
		"/v1/messages":         harness.Ask("bad").With("max_tokens", 5),
		"/v1/responses":        {"input": "bad", "max_output_tokens": 5},
		"/api/v1/chat":         {"input": "bad", "max_output_tokens": 5},
		"/api/chat":            harness.Ask("bad"),
	} {
		r := s.Post(path, request.With("model", "test/refusing")).Want(t, 400)
		if !strings.Contains(r.Body, "Nothing bad is said here: bad") || strings.Contains(r.Body, "raise_exception") || strings.Contains(r.Body, "line 1") {
			t.Errorf("%s: %s", path, r.Body)
		}
	}
}
