package randommodel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// tokenizer is what a model takes from another one.
type tokenizer struct {
	fields [][]byte // of the metadata, encoded
	silent []bool   // for each token: the model never says it
}

// The numbers of value types in GGUF files.
const (
	typeInt32  = 5
	typeString = 8
	typeArray  = 9
)

// sizes are those of values of the other types, in bytes.
var sizes = map[uint32]int64{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, typeInt32: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

// normalToken is the type of a token that is neither a control token nor anything else special.
const normalToken = 1

// readTokenizer reads the tokenizer of a GGUF file, with its chat template if wanted.
func readTokenizer(file []byte, withTemplate bool) (tokenizer, error) {
	var header struct {
		Magic           [4]byte
		Version         uint32
		Tensors, Fields uint64
	}
	r := bytes.NewReader(file)
	if err := binary.Read(r, binary.LittleEndian, &header); err != nil {
		return tokenizer{}, err
	}
	if string(header.Magic[:]) != "GGUF" || header.Version != 3 {
		return tokenizer{}, errors.New("this is no GGUF file of version 3")
	}
	var t tokenizer
	var tokens []string
	var types []int32
	for range header.Fields {
		begin := r.Size() - int64(r.Len())
		name, err := readString(r)
		if err != nil {
			return t, err
		}
		switch name {
		case "tokenizer.ggml.tokens":
			tokens, err = readStrings(r)
		case "tokenizer.ggml.token_type":
			types, err = readInts(r)
		default:
			err = skipValue(r)
		}
		if err != nil {
			return t, fmt.Errorf("field %s: %w", name, err)
		}
		if strings.HasPrefix(name, "tokenizer.") && (withTemplate || name != templateField) {
			t.fields = append(t.fields, file[begin:r.Size()-int64(r.Len())])
		}
	}
	if len(tokens) == 0 || len(tokens) != len(types) {
		return t, fmt.Errorf("%d tokens and %d types of tokens", len(tokens), len(types))
	}
	t.silent = make([]bool, len(tokens))
	for i, token := range tokens {
		t.silent[i] = types[i] != normalToken || strings.ContainsFunc(token, isUnprintable)
	}
	return t, nil
}

// isUnprintable reports whether a character of a token stands for a byte that isn't printable ASCII. The tokens have letters of
// their own for the space and the line feed.
func isUnprintable(c rune) bool {
	const space, lineFeed = 'Ġ', 'Ċ'
	return (c <= ' ' || c > '~') && c != space && c != lineFeed
}

func readString(r io.Reader) (string, error) {
	var n uint64
	if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
		return "", err
	}
	if n > 1<<24 {
		return "", fmt.Errorf("a text of %d bytes", n)
	}
	text := make([]byte, n)
	_, err := io.ReadFull(r, text)
	return string(text), err
}

// arrayOf reads the head of an array, which has to be of a type.
func arrayOf(r io.Reader, want uint32) (n uint64, err error) {
	var head struct {
		Type, Of uint32
		N        uint64
	}
	err = binary.Read(r, binary.LittleEndian, &head)
	if err == nil && (head.Type != typeArray || head.Of != want || head.N > 1<<20) {
		err = fmt.Errorf("an array of type %d was expected: %+v", want, head)
	}
	return head.N, err
}

func readStrings(r io.Reader) (all []string, err error) {
	n, err := arrayOf(r, typeString)
	for i := uint64(0); i < n && err == nil; i++ {
		var text string
		text, err = readString(r)
		all = append(all, text)
	}
	return all, err
}

func readInts(r io.Reader) ([]int32, error) {
	n, err := arrayOf(r, typeInt32)
	if err != nil {
		return nil, err
	}
	all := make([]int32, n)
	return all, binary.Read(r, binary.LittleEndian, all)
}

func skipValue(r *bytes.Reader) error {
	var kind uint32
	if err := binary.Read(r, binary.LittleEndian, &kind); err != nil {
		return err
	}
	n := uint64(1)
	if kind == typeArray {
		var head struct {
			Of uint32
			N  uint64
		}
		if err := binary.Read(r, binary.LittleEndian, &head); err != nil {
			return err
		}
		kind, n = head.Of, head.N
	}
	for range n {
		if kind == typeString {
			if _, err := readString(r); err != nil {
				return err
			}
			continue
		}
		size, ok := sizes[kind]
		if !ok {
			return fmt.Errorf("a value of type %d", kind)
		}
		if _, err := r.Seek(size, io.SeekCurrent); err != nil {
			return err
		}
	}
	return nil
}
