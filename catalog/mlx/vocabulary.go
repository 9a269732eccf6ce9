package mlx

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

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
