package mlx

import (
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog/chattemplate"
	"github.com/lmcaddy/lmcaddy/catalog/model"
	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

// Tokenizer is the relevant part of an MLX model's tokenizer_config.json.
type Tokenizer struct {
	Template json.RawMessage `json:"chat_template"`      // a text, or a list of several
	Python   lenient[string] `json:"chat_template_type"` // a template that is part of mlx_lm
	Parser   json.RawMessage `json:"tool_parser_type"`
	Longest  count           `json:"model_max_length"`
	Added    lenient[map[string]struct {
		Content string `json:"content"`
	}] `json:"added_tokens_decoder"`

	Text    string // all of its templates
	several bool
}

// ReadTokenizer reads a folder's tokenizer_config.json and chat template, as far as they can be read.
func ReadTokenizer(dir string) Tokenizer {
	var t Tokenizer
	if boundedfile.ReadJSON(filepath.Join(dir, chatFile), maxFile, &t) != nil {
		t = Tokenizer{}
	}
	if text, err := boundedfile.Read(filepath.Join(dir, templateFile), maxFile); err == nil {
		t.Text = string(text)
		return t
	}
	var one string
	var several []struct {
		Template string `json:"template"`
	}
	switch {
	case t.Python.Value != "":
		t.Text = PythonTemplate
	case json.Unmarshal(t.Template, &one) == nil:
		t.Text = one
	case json.Unmarshal(t.Template, &several) == nil:
		t.several = true
		for _, each := range several {
			t.Text += each.Template + "\n"
		}
	}
	return t
}

// PythonTemplate stands for a template in Python. mlx_lm has one, DeepSeek-V3.2's, which takes tools and the switch.
const PythonTemplate = "{{ tools }}{{ enable_thinking }}"

// MaxLength returns the number of tokens that the tokenizer is meant for. Most tokenizers have a huge number instead.
func (t *Tokenizer) MaxLength() int {
	if t.Longest >= 1e9 {
		return 0
	}
	return int(t.Longest)
}

// CallsTools reports whether the model is offered tools by its template, and the engine finds its calls.
func (t *Tokenizer) CallsTools() bool {
	if !chattemplate.TakesTools(t.Text) {
		return false
	}
	if len(t.Parser) > 0 { // null turns the search off
		var name string
		return json.Unmarshal(t.Parser, &name) == nil && name != ""
	}
	return !t.several && slices.ContainsFunc(callMarks, func(marks []string) bool {
		return !slices.ContainsFunc(marks, func(mark string) bool { return !strings.Contains(t.Text, mark) })
	})
}

// callMarks are what a template contains if mlx_lm finds out by itself how the model writes calls: all of one line.
var callMarks = [][]string{
	{"<minimax:tool_call>"},
	{"<|tool_call>", "<tool_call|>"},
	{"<start_function_call>"},
	{"<longcat_tool_call>"},
	{"<arg_key>"},
	{"<|tool_list_start|>"},
	{"<tool_call>\n<function="},
	{`<tool_call>\n<function=`}, // as it is written in a string of the template
	{"<|tool_calls_section_begin|>"},
	{"[TOOL_CALLS]"},
	{"<tool_call>", "tool_call.name"},
}

// thoughtMarks are the tokens that enclose thoughts. mlx_lm knows no others.
var thoughtMarks = [][2]string{{"<think>", "</think>"}, {"<longcat_think>", "</longcat_think>"}, {"<|channel>", "<channel|>"}}

// ReasoningIn returns the choice of efforts. Without tokens around them, the engine doesn't find thoughts; with such tokens
// alone, as models that don't think may have them, there are none.
func (t *Tokenizer) ReasoningIn(dir string) model.Reasoning {
	added := map[string]bool{}
	for _, token := range t.Added.Value {
		added[token.Content] = true
	}
	marksIn := func() int {
		return slices.IndexFunc(thoughtMarks, func(pair [2]string) bool { return added[pair[0]] && added[pair[1]] })
	}
	i := marksIn()
	if i < 0 {
		readAdded(filepath.Join(dir, vocabularyFile), added)
		if i = marksIn(); i < 0 {
			return model.Reasoning{}
		}
	}
	r := chattemplate.Reasoning(t.Text)
	if len(r.Options) == 0 && strings.Contains(t.Text, thoughtMarks[i][1]) {
		r = model.Reasoning{Options: []string{"on"}, Default: "on"}
	}
	return r
}

// readAdded adds the tokens that a tokenizer.json lists apart from the vocabulary. It stops after these, which usually come first.
func readAdded(path string, added map[string]bool) {
	f, _, err := boundedfile.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	_ = eachField(json.NewDecoder(io.LimitReader(f, maxFile)), func(d *json.Decoder, name string) error {
		if name != "added_tokens" {
			return d.Decode(&skipped{})
		}
		var all []struct {
			Content string `json:"content"`
		}
		if err := d.Decode(&all); err != nil {
			return err
		}
		for _, token := range all {
			added[token.Content] = true
		}
		return io.EOF
	}) // an unusual file only has no tokens
}

// skipped is a value that isn't kept.
type skipped struct{}

// UnmarshalJSON never fails.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

var errNotObject = errors.New("it is not an object")

// eachField calls read for each field of an object. read must decode the value. Its error ends the object.
func eachField(d *json.Decoder, read func(d *json.Decoder, name string) error) error {
	switch t, err := d.Token(); {
	case err != nil:
		return err
	case t != json.Delim('{'):
		return errNotObject
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := read(d, name.(string)); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}
