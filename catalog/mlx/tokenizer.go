package mlx

import (
	"encoding/json"
	"errors"
	"io"
	"os"
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

// vocabulary is the relevant part of a tokenizer.json.
type vocabulary struct {
	normalizer, splitter step
	model                struct {
		Kind         string     `json:"type"`
		ByteFallback bool       `json:"byte_fallback"`
		Tokens       tokenTexts `json:"vocab"`
	}
	added []struct {
		Content string `json:"content"`
		Left    bool   `json:"lstrip"`
		Right   bool   `json:"rstrip"`
	}
}

// step is a normalizer or pre-tokenizer, or a sequence of such steps.
type step struct {
	Kind        string `json:"type"`
	Normalizers []step `json:"normalizers"`
	Splitters   []step `json:"pretokenizers"`
	Behavior    string `json:"behavior"`
	Pattern     struct {
		Text string `json:"String"`
	} `json:"pattern"`
	Content string `json:"content"`
}

// composed is how many bytes at most become one byte when characters are composed (NFC): three Korean letters of three bytes make a
// syllable of three bytes.
const composed = 3

// LongestToken is LongestToken for a tokenizer.json. Texts in it may have several bytes for each byte that they stand for.
func LongestToken(dir string) (int, error) {
	v, err := readVocabulary(filepath.Join(dir, vocabularyFile))
	if err != nil {
		return 0, err
	}
	factor := v.normalizer.shortens()
	if factor == 0 || v.splitter.drops() || v.model.Kind != "BPE" && v.model.Kind != "Unigram" {
		return 0, nil
	}
	if !v.model.ByteFallback && !v.splitter.isOfBytes() {
		return 0, nil // unknown characters have one token, or none
	}
	longest := int(v.model.Tokens)
	for _, token := range v.added {
		if token.Left || token.Right { // any space beside it is dropped
			return 0, nil
		}
		longest = max(longest, len(token.Content))
	}
	return longest * factor, nil
}

func readVocabulary(path string) (v vocabulary, err error) {
	f, _, err := boundedfile.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return v, nil // its tokenizer is in another form
	}
	if err != nil {
		return v, err
	}
	defer f.Close()
	err = eachField(json.NewDecoder(io.LimitReader(f, maxFile)), func(d *json.Decoder, name string) error {
		switch name {
		case "normalizer":
			return d.Decode(&v.normalizer)
		case "pre_tokenizer":
			return d.Decode(&v.splitter)
		case "model":
			return d.Decode(&v.model)
		case "added_tokens":
			return d.Decode(&v.added)
		default:
			return d.Decode(&skipped{})
		}
	})
	if err != nil {
		return v, errors.New("its " + vocabularyFile + " can't be read")
	}
	return v, nil
}

// shortens returns how many bytes of a text a normalizer makes one byte of, at most. It returns 0 if that is unknown.
func (s *step) shortens() int {
	switch s.Kind {
	case "", "Prepend":
		return 1
	case "NFC":
		return composed
	case "Replace":
		if text := s.Pattern.Text; text != "" && len(text) <= len(s.Content) {
			return 1
		}
	case "Sequence":
		factor := 1
		for i := range s.Normalizers {
			factor = min(factor*s.Normalizers[i].shortens(), composed*composed)
		}
		return factor
	}
	return 0
}

// drops reports whether a pre-tokenizer may drop parts of a text.
func (s *step) drops() bool {
	switch s.Kind {
	case "", "ByteLevel", "Digits", "Metaspace", "UnicodeScripts":
		return false
	case "Split", "Punctuation":
		return s.Behavior == "Removed"
	case "Sequence":
		return slices.ContainsFunc(s.Splitters, func(s step) bool { return s.drops() })
	default:
		return true
	}
}

// isOfBytes reports whether a pre-tokenizer writes each byte as a character of its own.
func (s *step) isOfBytes() bool {
	return s.Kind == "ByteLevel" || slices.ContainsFunc(s.Splitters, func(s step) bool { return s.isOfBytes() })
}

// tokenTexts is the length of the longest text in a vocabulary, in bytes.
type tokenTexts int

// UnmarshalJSON reads an object with the texts as keys, or a list of pairs.
func (t *tokenTexts) UnmarshalJSON(all []byte) error {
	d := json.NewDecoder(strings.NewReader(string(all)))
	switch start, err := d.Token(); {
	case err != nil:
		return err
	case start == json.Delim('['):
		return t.readPairs(d)
	case start != json.Delim('{'):
		return errNotObject
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		*t = max(*t, tokenTexts(len(name.(string))))
		if err := d.Decode(&skipped{}); err != nil {
			return err
		}
	}
	return nil
}

func (t *tokenTexts) readPairs(d *json.Decoder) error {
	for d.More() {
		var pair []lenient[string]
		if err := d.Decode(&pair); err != nil {
			return err
		}
		if len(pair) > 0 {
			*t = max(*t, tokenTexts(len(pair[0].Value)))
		}
	}
	return nil
}
