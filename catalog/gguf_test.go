package catalog

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// file is a GGUF file to be written: its metadata, and its tensors by their number of 32-bit floats.
type file struct {
	meta    map[string]any // string, bool, uint16, uint32 or float32
	tensors map[string]int
}

// llama is a small model that can be told by its name. more overrides its metadata; nil takes a key away.
func llama(name string, more map[string]any) file {
	meta := map[string]any{
		"general.architecture": "llama", "general.name": name, "general.file_type": uint32(0),
		"llama.context_length": uint32(2048), "llama.embedding_length": uint32(8), "llama.block_count": uint32(1),
		"llama.attention.head_count": uint32(2),
	}
	for k, v := range more {
		if v == nil {
			delete(meta, k)
		} else {
			meta[k] = v
		}
	}
	return file{meta, map[string]int{"token_embd.weight": 512, "blk.0.attn_q.weight": 64}}
}

// bytes is the file, version 3: header, metadata, tensors' infos, padding, data.
func (f file) bytes() []byte {
	var b bytes.Buffer
	number := func(v any) {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	text := func(s string) {
		number(uint64(len(s)))
		b.WriteString(s)
	}
	b.WriteString("GGUF")
	number(uint32(3))
	number(uint64(len(f.tensors)))
	number(uint64(len(f.meta)))
	for _, k := range slices.Sorted(maps.Keys(f.meta)) {
		text(k)
		switch v := f.meta[k].(type) {
		case string:
			number(uint32(8))
			text(v)
		case bool:
			number(uint32(7))
			number(v)
		case uint16:
			number(uint32(2))
			number(v)
		case uint32:
			number(uint32(4))
			number(v)
		case float32:
			number(uint32(6))
			number(math.Float32bits(v))
		}
	}
	data := 0
	for _, name := range slices.Sorted(maps.Keys(f.tensors)) {
		text(name)
		number(uint32(1)) // dimensions
		number(uint64(f.tensors[name]))
		number(uint32(0)) // of type f32
		number(uint64(data))
		data += 4 * f.tensors[name]
	}
	b.Write(make([]byte, (32-b.Len()%32)%32+data))
	return b.Bytes()
}

// write writes a file below a root, with the folders that lead there.
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
