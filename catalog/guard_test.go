package catalog

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"testing"
)

func TestCheckMetadata(t *testing.T) {
	t.Parallel()
	shipped, err := os.ReadFile("../testdata/models/lmcaddy/tinychat/tinychat-f16.gguf")
	if err != nil {
		t.Fatal(err)
	}
	small := func(key string, value any) []byte { return llama("x", map[string]any{key: value}).bytes() }
	nested := small("a", "") // its text becomes an array of arrays
	at := bytes.Index(nested, []byte("\x01\x00\x00\x00\x00\x00\x00\x00a\x08")) + 9
	binary.LittleEndian.PutUint32(nested[at:], ggufArray)
	copy(nested[at+4:], []byte{ggufArray, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	for name, tt := range map[string]struct {
		content []byte
		want    error
	}{
		"the shipped model":     {shipped, nil},
		"a small one":           {small("x.y", uint16(3)), nil},
		"a split one":           {small(splitTensors, uint32(3)), nil},
		"too many tensors":      {small(splitTensors, uint32(1<<31)), errTooManyTensors},
		"tensors in words":      {small(splitTensors, "99999999999"), errNotUnderstood},
		"arrays of arrays":      {nested, errNotUnderstood},
		"a name without end":    {append([]byte("GGUF\x03\x00\x00\x00"+strings.Repeat("\x01\x00\x00\x00\x00\x00\x00\x00", 2)), bytes.Repeat([]byte{0xff}, 8)...), errNotUnderstood},
		"cut: the parser's own": {shipped[:3000], nil},
		"older, narrow lengths": {[]byte("GGUF\x01\x00\x00\x00" + "\x00\x00\x00\x00" + "\x01\x00\x00\x00" +
			"\x13\x00\x00\x00" + splitTensors + "\x04\x00\x00\x00" + "\xff\xff\xff\xff"), errTooManyTensors},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := checkMetadata(bytes.NewReader(tt.content)); err != tt.want { //nolint:errorlint // the very errors
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

// TestReadHeader_AHostileFileEndsNothing goes through the parser, which would take the memory of the whole process.
func TestReadHeader_AHostileFileEndsNothing(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir(), "hostile.gguf", llama("x", map[string]any{splitTensors: uint32(1<<32 - 1)}).bytes())
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if h := readHeader(path, info); h.err != errTooManyTensors { //nolint:errorlint // the very error
		t.Errorf("error %v", h.err)
	}
}

// FuzzCheckMetadata sees that the walk ends, without a panic, whatever it walks over.
func FuzzCheckMetadata(f *testing.F) {
	f.Add(llama("x", nil).bytes())
	f.Add(llama("x", map[string]any{splitTensors: uint32(2)}).bytes())
	f.Fuzz(func(_ *testing.T, content []byte) { _ = checkMetadata(bytes.NewReader(content)) })
}
