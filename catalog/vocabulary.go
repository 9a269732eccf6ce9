package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"slices"

	"github.com/lmcaddy/lmcaddy/catalog/mlx"
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
	seed := maphash.MakeSeed()
	t, err := readVocabulary(target, seed)
	if err != nil {
		return err
	}
	d, err := readVocabulary(draft, seed)
	if err != nil {
		return err
	}
	if reason := t.differs(d); reason != "" {
		return &VocabularyError{target.Key, draft.Key, reason}
	}
	return nil
}

// LongestToken returns an upper bound for the length of a model's tokens in bytes, so a text has at least its length divided by
// that many tokens. It returns 0 if the bound is unknown, or if the tokenizer drops parts of texts or has a token for any
// unknown word. A token in the file may be longer than the text it stands for, but never shorter.
func LongestToken(m Model) (int, error) {
	if m.Format == FormatMLX {
		longest, err := mlx.LongestToken(m.Path)
		if err != nil {
			return 0, fmt.Errorf("reading the vocabulary of %s: %w", m.Key, err)
		}
		return longest, nil
	}
	v, err := readVocabulary(m, maphash.MakeSeed())
	if err != nil || v.model != "llama" && v.model != "gpt2" {
		return 0, err
	}
	return v.longest, nil
}

// vocabulary describes a model's tokenizer.
type vocabulary struct {
	model, pre     string // kind of tokenizer, and of its pre-tokenizer
	bos, eos       int64  // IDs of tokens; -1: none
	addBOS, addEOS bool
	tokens         []uint64 // hashes of the tokens' texts
	longest        int      // length of the longest token in the file, in bytes
}

func (v vocabulary) differs(o vocabulary) string {
	n := min(len(v.tokens), len(o.tokens))
	if v.kind() != o.kind() {
		return fmt.Sprintf("their tokenizers are of different kinds, %q and %q", v.model, o.model)
	}
	if v.addBOS != o.addBOS || v.addBOS && v.bos != o.bos {
		return "their texts begin with different tokens"
	}
	if v.addEOS != o.addEOS || v.addEOS && v.eos != o.eos {
		return "their texts end with different tokens"
	}
	if max(len(v.tokens), len(o.tokens))-n > maxSizeDifference {
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
	switch v.model {
	case "gemma4", "hybriddna", "whitespace":
		return "gpt2"
	case "none":
		return "no_vocab"
	default:
		return v.model
	}
}

// beginning lists the pre-tokenizers that add a first token by default.
var beginning = []string{
	"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano", "tekken",
	"chameleon", "gemma4",
}

func (v vocabulary) defaults() (bos, eos int64, addBOS, addEOS bool) {
	switch v.model {
	case "llama":
		return 1, 2, true, false
	case "bert":
		return 101, -1, true, false
	case "t5":
		return -1, 1, false, true
	case "plamo2":
		return 1, 2, false, false
	case "gemma4":
		return -1, -1, true, false
	case "gpt2", "hybriddna", "whitespace":
		return 11, 11, slices.Contains(beginning, v.pre), false
	default:
		return -1, -1, false, false
	}
}

func readVocabulary(m Model, seed maphash.Seed) (vocabulary, error) {
	fail := func(err error) (vocabulary, error) {
		return vocabulary{}, fmt.Errorf("reading the vocabulary of %s: %w", m.Key, err)
	}
	if m.Err != nil {
		return fail(m.Err)
	}
	f, err := os.Open(m.Path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	r := vocabularyReader{seed: seed, numbers: map[string]uint64{}}
	meta := newMetadata(newHeaderReader(), f, newAllowance())
	meta.visit = r.visit
	switch err := meta.walk(); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fail(errors.New("its header ends too early"))
	case err != nil:
		return fail(err)
	}
	return r.finish(), nil
}

// vocabularyReader reads a vocabulary from a file's metadata.
type vocabularyReader struct {
	seed    maphash.Seed
	found   vocabulary
	numbers map[string]uint64 // numbers and bools, by the last part of their keys
}

// visit reads a value if it belongs to the vocabulary.
func (r *vocabularyReader) visit(m *metadata, key string, kind uint64) (done bool, err error) {
	const prefix = "tokenizer.ggml."
	if len(key) <= len(prefix) || key[:len(prefix)] != prefix {
		return false, nil
	}
	switch name := key[len(prefix):]; name {
	case "model", "pre":
		text, err := m.name(kind)
		if name == "model" {
			r.found.model = text
		} else {
			r.found.pre = text
		}
		return true, err
	case "bos_token_id", "eos_token_id", "add_bos_token", "add_eos_token":
		size, isNumber := ggufSizes[kind]
		if !isNumber {
			return true, errNotUnderstood
		}
		r.numbers[name], err = m.uint(size)
		return true, err
	case "tokens":
		if kind != ggufArray {
			return true, errNotUnderstood
		}
		return true, r.readTokens(m)
	default:
		return false, nil
	}
}

func (r *vocabularyReader) readTokens(m *metadata) error {
	kind, count, err := m.arrayHead()
	if err != nil {
		return err
	}
	if kind != ggufString {
		return errNotUnderstood
	}
	r.found.tokens = nil
	for i := range count {
		length, err := m.lengthUpTo(metadataBuffer)
		if err != nil {
			return err
		}
		text, err := m.Peek(int(length)) //nolint:gosec // bounded above
		if err != nil {
			return err
		}
		if length == 0 {
			text = fmt.Appendf(nil, "[EMPTY_%d]", i) // the engine's name for it
		}
		r.found.tokens = append(r.found.tokens, maphash.Bytes(r.seed, text))
		r.found.longest = max(r.found.longest, len(text))
		if _, err := m.Discard(int(length)); err != nil { //nolint:gosec // bounded above
			return err
		}
	}
	return nil
}

func (r *vocabularyReader) finish() vocabulary {
	v := r.found
	bos, eos, addBOS, addEOS := v.defaults()
	id := func(name string, otherwise int64) int64 {
		n, ok := r.numbers[name]
		if ok && n < uint64(len(v.tokens)) {
			return int64(n) //nolint:gosec // bounded above
		}
		if otherwise >= int64(len(v.tokens)) {
			return -1
		}
		return otherwise
	}
	truth := func(name string, otherwise bool) bool {
		if n, ok := r.numbers[name]; ok {
			return n != 0
		}
		return otherwise
	}
	v.bos, v.eos = id("bos_token_id", bos), id("eos_token_id", eos)
	v.addBOS = truth("add_bos_token", addBOS) || v.model == "gemma4"
	v.addEOS = truth("add_eos_token", addEOS)
	v.model = cmp.Or(v.model, "no_vocab")
	return v
}
