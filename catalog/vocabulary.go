package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// VocabularyError says how the vocabularies of two models differ, so that one can't be the draft model of the other.
type VocabularyError struct {
	Target, Draft string // keys of the models
	Reason        string
}

func (e *VocabularyError) Error() string {
	return fmt.Sprintf("%s can't be the draft model of %s: %s. Choose a smaller model of the same family.", e.Draft, e.Target, e.Reason)
}

// The engine's limits for the difference between vocabularies.
const (
	maxSizeDifference = 128
	firstComparedID   = 5
)

// SameVocabulary checks that a model can be the draft model of another. The engine requires nearly the same vocabulary;
// otherwise it runs without the draft model and only logs that. The error is a [*VocabularyError], or says why the files can't
// be read. Reading a vocabulary takes some ten milliseconds.
func SameVocabulary(target, draft Model) error {
	if target.Format == FormatMLX || draft.Format == FormatMLX {
		return &VocabularyError{target.Key, draft.Key, "they aren't both GGUF files"}
	}
	t, err := readVocabulary(target)
	if err != nil {
		return err
	}
	d, err := readVocabulary(draft)
	if err != nil {
		return err
	}
	if reason := t.differs(d); reason != "" {
		return &VocabularyError{target.Key, draft.Key, reason}
	}
	return nil
}

// LongestToken returns an upper bound for the length of a model's tokens in bytes, so a text has at least its length divided by
// that many tokens. It returns 0 if the bound is unknown, as that of an MLX model is, or if the tokenizer has a token for any unknown
// word. A token in the file may be longer than the text it stands for, but never shorter.
func LongestToken(m Model) (int, error) {
	if m.Format == FormatMLX {
		return 0, nil
	}
	v, err := readVocabulary(m)
	if kind := v.says["model"]; err != nil || kind != "llama" && kind != "gpt2" {
		return 0, err
	}
	return v.longest, nil
}

// vocabulary describes a model's tokenizer.
type vocabulary struct {
	says    map[string]any // what the header says of it, by the last part of the keys
	tokens  []string
	longest int // length of the longest token in the file, in bytes
}

func (v vocabulary) differs(o vocabulary) string {
	n := min(len(v.tokens), len(o.tokens))
	switch {
	case v.kind() != o.kind():
		return fmt.Sprintf("their tokenizers are of different kinds, %q and %q", v.kind(), o.kind())
	case v.addsAnother("bos", o):
		return "their texts begin with different tokens"
	case v.addsAnother("eos", o):
		return "their texts end with different tokens"
	case max(len(v.tokens), len(o.tokens))-n > maxSizeDifference:
		return fmt.Sprintf("their vocabularies have %d and %d tokens", len(v.tokens), len(o.tokens))
	}
	for i := firstComparedID; i < n; i++ {
		if v.tokens[i] != o.tokens[i] {
			return fmt.Sprintf("their tokens differ, from number %d on", i)
		}
	}
	return ""
}

// kind returns the kind of tokenizer as the engine distinguishes them.
func (v vocabulary) kind() string {
	switch kind, _ := v.says["model"].(string); kind {
	case "gemma4", "hybriddna", "whitespace":
		return "gpt2"
	case "none", "":
		return "no_vocab"
	default:
		return kind
	}
}

// addsAnother reports whether another token is added to texts, at the beginning or the end. What a header doesn't say is the engine's
// choice, and isn't compared.
func (v vocabulary) addsAnother(token string, o vocabulary) bool {
	adds, known := v.says["add_"+token+"_token"].(bool)
	othersAdd, othersKnown := o.says["add_"+token+"_token"].(bool)
	if known && othersKnown && adds != othersAdd {
		return true
	}
	id, othersID := v.says[token+"_token_id"], o.says[token+"_token_id"]
	return adds && othersAdd && id != nil && othersID != nil && fmt.Sprint(id) != fmt.Sprint(othersID)
}

func readVocabulary(m Model) (v vocabulary, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading the vocabulary of %s: %w", m.Key, err)
		}
	}()
	if m.Err != nil {
		return v, m.Err
	}
	f, err := os.Open(m.Path)
	if err != nil {
		return v, err
	}
	defer f.Close()
	v.says = map[string]any{}
	meta := newMetadata(f, newAllowance())
	meta.visit = func(m *metadata, key string, kind uint64) (bool, error) {
		name, isOfTokenizer := strings.CutPrefix(key, "tokenizer.ggml.")
		switch {
		case isOfTokenizer && name == "tokens":
			return true, v.readTokens(m, kind)
		case !isOfTokenizer || kind == ggufArray:
			return false, nil
		}
		value, err := m.value(key, kind)
		v.says[name] = value
		return true, err
	}
	err = meta.walk()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("its header ends too early")
	}
	return v, err
}

func (v *vocabulary) readTokens(m *metadata, kind uint64) error {
	if kind != ggufArray {
		return errNotUnderstood
	}
	of, count, err := m.arrayHead()
	if err != nil {
		return err
	}
	if of != ggufString {
		return errNotUnderstood
	}
	v.tokens = nil
	for i := range count {
		text, err := m.read(metadataBuffer)
		if err != nil {
			return err
		}
		v.longest = max(v.longest, len(text))
		v.tokens = append(v.tokens, cmp.Or(string(text), fmt.Sprintf("[EMPTY_%d]", i))) // the engine's name for it
	}
	return nil
}
