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
	long := small("a", []bool{true}) // its length becomes larger than any file
	binary.LittleEndian.PutUint64(long[bytes.Index(long, []byte("a\x09\x00\x00\x00\x07"))+9:], maxArray+1)
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
		"enough layers":         {small("x.block_count", uint32(maxBlocks)), nil},
		"too many layers":       {small("x.block_count", uint32(maxBlocks+1)), errTooManyBlocks},
		"layers by the exabyte": {small("x.block_count", uint64(1<<63)), errTooManyBlocks},
		"layers in words":       {small("clip.vision.block_count", "many"), errNotUnderstood},
		"a long array":          {long, errTooLongArray},
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
	for want, meta := range map[error]map[string]any{
		errTooManyTensors: {splitTensors: uint32(1<<32 - 1)},
		errTooManyBlocks: {
			"general.architecture": "clip", "clip.has_vision_encoder": true,
			"clip.vision.block_count": uint64(1 << 34), "clip.vision.feed_forward_length": uint32(1),
		},
	} {
		path := write(t, t.TempDir(), "hostile.gguf", llama("x", meta).bytes())
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if h := readHeader(fileAt(path, info)); h.err != want { //nolint:errorlint // the very error
			t.Errorf("error %v, want %v", h.err, want)
		}
	}
}

// FuzzCheckMetadata sees that the walk ends, without a panic, whatever it walks over.
func FuzzCheckMetadata(f *testing.F) {
	f.Add(llama("x", nil).bytes())
	f.Add(llama("x", map[string]any{splitTensors: uint32(2)}).bytes())
	f.Fuzz(func(_ *testing.T, content []byte) { _ = checkMetadata(bytes.NewReader(content)) })
}
