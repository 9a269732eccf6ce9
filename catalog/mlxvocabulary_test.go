package catalog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shippedMLX is the folder of the MLX models in this repository.
const shippedMLX = "../testdata/mlx"

func TestLongestToken_MLX(t *testing.T) {
	t.Parallel()
	const byteLevel = `"pre_tokenizer":{"type":"ByteLevel"}`
	const bpe = `"model":{"type":"BPE","vocab":{"a":0,"Ġabc":1,"\u0120\u0120":2}}`
	pieces := func(normalizer string) string {
		return `{"normalizer":` + normalizer + `,"model":{"type":"BPE","byte_fallback":true,"vocab":{"▁ab":1},"merges":["a b"]}}`
	}
	for name, tt := range map[string]struct {
		tokenizer string
		want      int
	}{
		"of bytes":           {`{` + byteLevel + `,` + bpe + `}`, 5},
		"of bytes, composed": {`{"normalizer":{"type":"NFC"},` + byteLevel + `,` + bpe + `}`, 15},
		"split first": {
			`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","behavior":"Isolated"},{"type":"ByteLevel"}]},` + bpe + `}`, 5,
		},
		"split and dropped": {
			`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","behavior":"Removed"},{"type":"ByteLevel"}]},` + bpe + `}`, 0,
		},
		"of words":                {`{"pre_tokenizer":{"type":"Whitespace"},` + bpe + `}`, 0},
		"with unknown characters": {`{` + bpe + `}`, 0},
		"an added token":          {`{"added_tokens":[{"content":"<|im_start|>"}],` + byteLevel + `,` + bpe + `}`, 12},
		"one that takes spaces":   {`{"added_tokens":[{"content":"<|end|>","rstrip":true}],` + byteLevel + `,` + bpe + `}`, 0},
		"of pieces": {
			pieces(`{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]}`), 5,
		},
		"of pieces that are shortened":    {pieces(`{"type":"Replace","pattern":{"String":"  "},"content":" "}`), 0},
		"of pieces, by an expression":     {pieces(`{"type":"Replace","pattern":{"Regex":" +"},"content":" "}`), 0},
		"of pieces, with another charset": {pieces(`{"type":"Precompiled"}`), 0},
		"of pieces with scores":           {`{"model":{"type":"Unigram","byte_fallback":true,"vocab":[["<unk>",0],["▁abcd",-1.5]]}}`, 7},
		"of pieces of words":              {`{` + byteLevel + `,"model":{"type":"WordPiece","vocab":{"a":1}}}`, 0},
		"nothing":                         {`{}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "tokenizer.json", []byte(tt.tokenizer))
			got, err := LongestToken(Model{Key: "p/m", Format: FormatMLX, Path: dir})
			if err != nil || got != tt.want {
				t.Errorf("%d, %v, want %d", got, err, tt.want)
			}
		})
	}
	if n, err := LongestToken(Model{Format: FormatMLX, Path: t.TempDir()}); n != 0 || err != nil {
		t.Errorf("without the file: %d, %v", n, err)
	}
	dir := t.TempDir()
	write(t, dir, "tokenizer.json", []byte(`{"model":`))
	if _, err := LongestToken(Model{Key: "p/m", Format: FormatMLX, Path: dir}); err == nil || strings.Contains(err.Error(), dir) {
		t.Errorf("cut: %v", err)
	}
}

func TestLongestToken_OfTheShippedMLXModel(t *testing.T) {
	t.Parallel()
	folder, err := LongestToken(Model{Format: FormatMLX, Path: shippedMLX + "/lmcaddy/tinychat-mlx"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := LongestToken(Model{Path: shipped + "/lmcaddy/tinychat/tinychat-f16.gguf"})
	if err != nil || folder != file || folder == 0 {
		t.Errorf("%d bytes, and %d in the GGUF file: %v", folder, file, err)
	}
}

func TestSameVocabulary_MLX(t *testing.T) {
	t.Parallel()
	err := SameVocabulary(Model{Key: "a"}, Model{Key: "b", Format: FormatMLX})
	if _, ok := errors.AsType[*VocabularyError](err); !ok {
		t.Error(err)
	}
}

func BenchmarkLongestToken_MLX(b *testing.B) {
	var vocab, merges []string
	for i := range 150_000 {
		vocab = append(vocab, fmt.Sprintf(`"Ġword%d": %d`, i, i))
		merges = append(merges, fmt.Sprintf(`["Ġwo", "rd%d"]`, i))
	}
	dir := b.TempDir()
	text := `{"pre_tokenizer":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{` +
		strings.Join(vocab, ",\n") + `},"merges":[` + strings.Join(merges, ",\n") + `]}}`
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	m := Model{Format: FormatMLX, Path: dir}
	for b.Loop() {
		if _, err := LongestToken(m); err != nil {
			b.Fatal(err)
		}
	}
}
