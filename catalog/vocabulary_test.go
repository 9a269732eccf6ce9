package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// words returns a vocabulary of a given size, some words of which are changed.
func words(n int, changed map[int]string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("t%d", i)
	}
	for i, word := range changed {
		all[i] = word
	}
	return all
}

// speaker returns a model with a vocabulary. The keys of more lack the common prefix.
func speaker(tokens []string, more map[string]any) []byte {
	meta := map[string]any{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2", "tokenizer.ggml.tokens": tokens,
		"tokenizer.ggml.add_bos_token": false, "tokenizer.ggml.add_eos_token": false, "tokenizer.ggml.bos_token_id": uint32(998), "tokenizer.ggml.eos_token_id": uint32(999),
	}
	for k, v := range more {
		meta["tokenizer.ggml."+k] = v
	}
	return llama("Speaker", meta).bytes()
}

// TestSameVocabulary compares the first twenty cases with the results of llama-server, build 11669.
func TestSameVocabulary(t *testing.T) {
	t.Parallel()
	same := words(1000, nil)
	says := func(more map[string]any) []byte { return speaker(same, more) }
	plain, begun := says(nil), says(map[string]any{"add_bos_token": true})
	const begin, end = "their texts begin with different tokens", "their texts end with different tokens"
	for name, tt := range map[string]struct {
		target, draft []byte
		want          string
	}{
		"the same":                        {plain, plain, ""},
		"128 more":                        {plain, speaker(words(1128, nil), nil), ""},
		"128 fewer":                       {speaker(words(1128, nil), nil), plain, ""},
		"129 more":                        {plain, speaker(words(1129, nil), nil), "their vocabularies have 1000 and 1129 tokens"},
		"another fifth token":             {plain, speaker(words(1000, map[int]string{4: "x"}), nil), ""},
		"another sixth token":             {plain, speaker(words(1000, map[int]string{5: "x"}), nil), "their tokens differ, from number 5 on"},
		"another last token":              {plain, speaker(words(1000, map[int]string{999: "x"}), nil), "their tokens differ, from number 999 on"},
		"a sixth token without a text":    {plain, speaker(words(1000, map[int]string{5: ""}), nil), "their tokens differ, from number 5 on"},
		"another beginning, unused":       {plain, says(map[string]any{"bos_token_id": uint32(3)}), ""},
		"a beginning":                     {plain, begun, begin},
		"the same beginning":              {begun, begun, ""},
		"another beginning":               {begun, says(map[string]any{"add_bos_token": true, "bos_token_id": uint32(3)}), begin},
		"a beginning of no token":         {begun, says(map[string]any{"add_bos_token": true, "bos_token_id": uint32(5000)}), begin},
		"an end":                          {plain, says(map[string]any{"add_eos_token": true}), end},
		"another end, unused":             {plain, says(map[string]any{"eos_token_id": uint32(7)}), ""},
		"a beginning that is the default": {begun, says(map[string]any{"pre": "llama-bpe", "add_bos_token": nil}), ""},
		"no beginning, by default":        {plain, says(map[string]any{"add_bos_token": nil}), ""},

		"the engine's name for no text": {
			speaker(words(1000, map[int]string{5: "[EMPTY_5]"}), nil), speaker(words(1000, map[int]string{5: ""}), nil), "",
		},
		"another end":    {says(map[string]any{"add_eos_token": true}), says(map[string]any{"add_eos_token": true, "eos_token_id": uint32(7)}), end},
		"another kind":   {plain, says(map[string]any{"model": "llama"}), `their tokenizers are of different kinds, "gpt2" and "llama"`},
		"two of a kind":  {begun, says(map[string]any{"model": "gemma4", "add_bos_token": true}), ""},
		"no vocabulary":  {plain, f32, `their tokenizers are of different kinds, "gpt2" and "no_vocab"`},
		"none on either": {f32, f16, ""},
		"a bert's": {
			says(map[string]any{"model": "bert", "add_bos_token": true, "bos_token_id": uint32(101)}),
			says(map[string]any{"model": "bert", "add_bos_token": nil, "bos_token_id": nil}), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			err := SameVocabulary(
				Model{Key: "p/big", Path: write(t, dir, "big.gguf", tt.target)}, Model{Key: "p/small", Path: write(t, dir, "small.gguf", tt.draft)},
			)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var differs *VocabularyError
			if !errors.As(err, &differs) || differs.Reason != tt.want || differs.Target != "p/big" || differs.Draft != "p/small" {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestSameVocabulary_MLX(t *testing.T) {
	t.Parallel()
	err := SameVocabulary(Model{Key: "a"}, Model{Key: "b", Format: FormatMLX})
	if _, ok := errors.AsType[*VocabularyError](err); !ok {
		t.Error(err)
	}
}

func TestSameVocabulary_OfTheShippedModels(t *testing.T) {
	t.Parallel()
	model := func(name string) Model {
		return Model{Key: "lmcaddy/" + name, Path: filepath.Join(shipped, "lmcaddy", name, name+"-f16.gguf")}
	}
	if err := SameVocabulary(model("tinychat"), model("tinydraft")); err != nil {
		t.Error(err)
	}
	var differs *VocabularyError
	err := SameVocabulary(model("tinychat"), model("tinyrerank"))
	if !errors.As(err, &differs) || !strings.HasPrefix(err.Error(), "lmcaddy/tinyrerank can't be the draft model of lmcaddy/tinychat: ") {
		t.Error(err)
	}
}

func TestLongestToken(t *testing.T) {
	t.Parallel()
	long := words(1000, map[int]string{7: strings.Repeat("x", 90), 8: ""})
	for name, tt := range map[string]struct {
		content []byte
		want    int
	}{
		"of bytes":       {speaker(long, nil), 90},
		"of pieces":      {speaker(long, map[string]any{"model": "llama"}), 90},
		"of words":       {speaker(long, map[string]any{"model": "bert"}), 0}, // any unknown word is one token
		"without tokens": {f32, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := LongestToken(Model{Key: "p/m", Path: write(t, t.TempDir(), "m.gguf", tt.content)})
			if err != nil || got != tt.want {
				t.Errorf("%d, %v, want %d", got, err, tt.want)
			}
		})
	}
}

func TestSameVocabulary_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := speaker(words(10, nil), nil)
	at := bytes.Index(good, []byte("tokenizer.ggml.tokens")) + 40
	for name, tt := range map[string]struct {
		content []byte
		want    string
	}{
		"cut":                     {good[:at], "its header ends too early"},
		"tokens in one text":      {speaker(nil, map[string]any{"tokens": "a b c"}), errNotUnderstood.Error()},
		"tokens that are numbers": {speaker(nil, map[string]any{"tokens": []uint32{1, 2}}), errNotUnderstood.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ok, bad := Model{Key: "ok", Path: write(t, dir, "ok.gguf", good)}, Model{Key: "bad", Path: write(t, dir, "bad.gguf", tt.content)}
			for _, err := range []error{SameVocabulary(ok, bad), SameVocabulary(bad, ok)} {
				if want := "reading the vocabulary of bad: " + tt.want; err == nil || err.Error() != want {
					t.Errorf("%v, want %s", err, want)
				}
			}
		})
	}
	gone := Model{Key: "gone", Path: filepath.Join(t.TempDir(), "none")}
	if err := SameVocabulary(gone, gone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gone: %v", err)
	}
	broken := errors.New("broken")
	if err := SameVocabulary(Model{Err: broken}, gone); !errors.Is(err, broken) {
		t.Errorf("broken: %v", err)
	}
}

// FuzzReadVocabulary: reading ends without a panic.
func FuzzReadVocabulary(f *testing.F) {
	f.Add(speaker(words(3, nil), nil))
	f.Add(speaker(words(3, map[int]string{1: ""}), map[string]any{"model": "llama"}))
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := readVocabulary(Model{Path: path})
		if err == nil && v.differs(v) != "" {
			t.Errorf("it differs from itself: %s", v.differs(v))
		}
	})
}

func BenchmarkSameVocabulary(b *testing.B) {
	path := filepath.Join(b.TempDir(), "m.gguf")
	if err := os.WriteFile(path, speaker(words(128000, nil), nil), 0o600); err != nil {
		b.Fatal(err)
	}
	m := Model{Path: path}
	for b.Loop() {
		if err := SameVocabulary(m, m); err != nil {
			b.Fatal(err)
		}
	}
}
