package catalog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// file is a GGUF file to write.
type file struct {
	meta    map[string]any // string, bool, uint16, uint32, uint64, float32, []string, []uint32 or []bool
	tensors map[string]int // by their number of 32-bit floats
	more    []tensor
}

// tensor is a tensor of any shape and type.
type tensor struct {
	name       string
	kind       ggmlKind
	dimensions []int
}

// ggmlKind is a type of tensors.
type ggmlKind struct{ number, block, bytes int }

var (
	kindF32 = ggmlKind{0, 1, 4}
	kindF16 = ggmlKind{1, 1, 2}
	kindQ40 = ggmlKind{2, 32, 18}
	kindQ80 = ggmlKind{8, 32, 34}
)

func (t tensor) size() int {
	n := 1
	for _, d := range t.dimensions {
		n *= d
	}
	return n / t.kind.block * t.kind.bytes
}

// llama returns a small model with a name. more overrides its metadata; nil removes a key.
func llama(name string, more map[string]any) file {
	meta := map[string]any{
		"general.architecture": "llama", "general.name": name, "general.file_type": uint32(0),
		"llama.context_length": uint32(2048), "llama.embedding_length": uint32(8), "llama.block_count": uint32(1),
		"llama.attention.head_count": uint32(2),
	}
	for k, v := range more {
		if meta[k] = v; v == nil {
			delete(meta, k)
		}
	}
	return file{meta: meta, tensors: map[string]int{"token_embd.weight": 512, "blk.0.attn_q.weight": 64}}
}

// bytes returns the whole file.
func (f file) bytes() []byte {
	header, data := f.header()
	return append(header, make([]byte, data)...)
}

// sparse writes the file with a hole in place of its data.
func (f file) sparse(t *testing.T) string {
	t.Helper()
	header, data := f.header()
	path := write(t, t.TempDir(), "model.gguf", header)
	if err := os.Truncate(path, int64(len(header)+data)); err != nil {
		t.Fatal(err)
	}
	return path
}

// header returns the file up to its data, in version 3. The data are zeros.
func (f file) header() (header []byte, data int) {
	all := slices.Clone(f.more)
	for _, name := range slices.Sorted(maps.Keys(f.tensors)) {
		all = append(all, tensor{name, kindF32, []int{f.tensors[name]}})
	}
	var w ggufWriter
	w.WriteString("GGUF")
	w.number(uint32(3))
	w.number(uint64(len(all)))
	w.number(uint64(len(f.meta)))
	for _, k := range slices.Sorted(maps.Keys(f.meta)) {
		w.text(k)
		w.value(f.meta[k])
	}
	for _, t := range all {
		w.text(t.name)
		w.number(uint32(len(t.dimensions)))
		for _, d := range t.dimensions {
			w.number(uint64(d))
		}
		w.number(uint32(t.kind.number))
		w.number(uint64(data))
		data += (t.size() + 31) / 32 * 32
	}
	w.Write(make([]byte, (32-w.Len()%32)%32))
	return w.Bytes(), data
}

type ggufWriter struct{ bytes.Buffer }

func (w *ggufWriter) number(v any) {
	if err := binary.Write(w, binary.LittleEndian, v); err != nil {
		panic(err)
	}
}

func (w *ggufWriter) text(s string) {
	w.number(uint64(len(s)))
	w.WriteString(s)
}

// value writes a value after its type.
func (w *ggufWriter) value(v any) {
	array := func(kind uint32, n int) {
		w.number([]uint32{9, kind})
		w.number(uint64(n))
	}
	switch v := v.(type) {
	case string:
		w.number(uint32(8))
		w.text(v)
	case bool:
		w.number(uint32(7))
		w.number(v)
	case uint16:
		w.number(uint32(2))
		w.number(v)
	case uint32:
		w.number(uint32(4))
		w.number(v)
	case uint64:
		w.number(uint32(10))
		w.number(v)
	case float32:
		w.number(uint32(6))
		w.number(math.Float32bits(v))
	case []string:
		array(8, len(v))
		for _, s := range v {
			w.text(s)
		}
	case []uint32:
		array(4, len(v))
		w.number(v)
	case []bool:
		array(7, len(v))
		w.number(v)
	default:
		panic(fmt.Sprintf("no GGUF type for %T", v))
	}
}

// write writes a file below a root, and creates its folders.
func write(t *testing.T, root, rel string, content []byte) string {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
