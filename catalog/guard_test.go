package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	gguf "github.com/gpustack/gguf-parser-go"
)

// checkHeader reads a header, and returns what its bounds refuse.
func checkHeader(from io.Reader, left *allowance) error {
	_, err := readGGUF(new(gguf.GGUFFile), from, left)
	for _, ours := range complete {
		if errors.Is(err, ours) {
			return err
		}
	}
	return nil
}

func TestCheckHeader(t *testing.T) {
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
			if err := checkHeader(bytes.NewReader(tt.content), newAllowance()); err != tt.want { //nolint:errorlint // the very errors
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

// TestReadHeader_AHostileFileEndsNothing parses files that could exhaust the memory of the process.
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
		if h := readHeader(fileAt(path, info)); h.model.Err != want { //nolint:errorlint // the very error
			t.Errorf("error %v, want %v", h.model.Err, want)
		}
	}
}

// counting counts the bytes read.
type counting struct {
	*os.File
	read int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	c.read += int64(n)
	return n, err
}

// hugeFiles are sparse files of a model's size, whose headers declare more than models have.
func hugeFiles() map[string]struct {
	start []byte
	want  error
	read  int64 // at most
} {
	le := binary.LittleEndian
	head := func(tensors, pairs uint64, more ...byte) []byte {
		return append(le.AppendUint64(le.AppendUint64([]byte("GGUF\x03\x00\x00\x00"), tensors), pairs), more...)
	}
	value := func(kind uint32, more ...byte) []byte {
		return append(le.AppendUint32(append(le.AppendUint64(nil, 1), 'a'), kind), more...)
	}
	number := func(n uint64) []byte { return le.AppendUint64(nil, n) }
	array := func(kind uint32, length uint64) []byte { return append(le.AppendUint32(nil, kind), number(length)...) }
	type huge = struct {
		start []byte
		want  error
		read  int64
	}
	return map[string]huge{
		"pairs":                  {head(0, 600_000_000), errTooManyPairs, metadataBuffer},
		"pairs by the exabyte":   {head(0, 1<<63), errTooManyPairs, metadataBuffer},
		"as many as may be":      {head(0, maxPairs), nil, 2 << 20},
		"tensors":                {head(300_000_000, 0), errTooManyTensors, metadataBuffer},
		"a text":                 {head(0, 1, value(ggufString, number(7<<30)...)...), errTooLongHeader, metadataBuffer},
		"an array of numbers":    {head(0, 1, value(ggufArray, array(10, maxArray+1)...)...), errTooLongArray, metadataBuffer},
		"an array of texts":      {head(0, 1, value(ggufArray, array(ggufString, maxArray)...)...), nil, 34 << 20},
		"a text up to the bound": {head(0, 1, value(ggufString, number(maxHeader-metadataBuffer)...)...), nil, maxHeader},
		"a tensor's name":        {head(1, 0, number(7<<30)...), errNotUnderstood, metadataBuffer},
		"a key":                  {head(0, 1, number(7<<30)...), errNotUnderstood, metadataBuffer},
	}
}

// TestCheckHeader_ReadsLittle of an invalid file.
func TestCheckHeader_ReadsLittle(t *testing.T) {
	t.Parallel()
	for name, tt := range hugeFiles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(hugeFile(t, t.TempDir(), "huge.gguf", tt.start))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			counted := &counting{File: f}
			if err := checkHeader(counted, newAllowance()); err != tt.want { //nolint:errorlint // the very error
				t.Errorf("%v, want %v", err, tt.want)
			}
			if counted.read > tt.read {
				t.Errorf("%d bytes were read, more than %d", counted.read, tt.read)
			}
		})
	}
}

func hugeFile(t *testing.T, dir, name string, start []byte) string {
	t.Helper()
	path := write(t, dir, name, start)
	if err := os.Truncate(path, 8<<30); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCatalog_HugeFilesAreBrokenModels: they are listed with the reason, and other models can be used.
func TestCatalog_HugeFilesAreBrokenModels(t *testing.T) {
	t.Parallel()
	c, root := catalogOf(t, files{"pub/good/good.gguf": llama("Good", nil).bytes(), "pub/split/split-00001-of-00002.gguf": llama("Split", nil).bytes()})
	want := map[string]error{"pub/good": nil, "pub/split": errTooManyPairs}
	hugeFile(t, root, "pub/split/split-00002-of-00002.gguf", hugeFiles()["pairs"].start)
	for name, huge := range hugeFiles() {
		if huge.want != nil {
			key := "pub/" + strings.NewReplacer(" ", "-", "'", "").Replace(name)
			hugeFile(t, root, key+"/x.gguf", huge.start)
			want[key] = huge.want
		}
	}
	got := map[string]error{}
	for _, m := range models(t, c) {
		got[m.Key] = m.Err
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzCheckHeader: the check ends without a panic.
func FuzzCheckHeader(f *testing.F) {
	f.Add(llama("x", nil).bytes())
	f.Add(llama("x", map[string]any{splitTensors: uint32(2)}).bytes())
	f.Fuzz(func(_ *testing.T, content []byte) { _ = checkHeader(bytes.NewReader(content), newAllowance()) })
}
