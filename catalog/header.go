package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	gguf "github.com/gpustack/gguf-parser-go"
)

// header is what a file says of itself, for as long as it has this size and time.
type header struct {
	size    int64
	changed time.Time
	parts   string // the state of a split model's other parts
	kind    kind
	model   Model // without what depends on where the file lies
	err     error
}

type kind uint8

const (
	kindModel kind = iota
	kindProjector
	kindOther
)

func (h header) describes(info fs.FileInfo) bool {
	return h.size == info.Size() && h.changed.Equal(info.ModTime())
}

// readHeader never fails: the error is part of what is known of the file.
func readHeader(path string, info fs.FileInfo) header {
	h := header{size: info.Size(), changed: info.ModTime()}
	h.model = Model{Format: FormatGGUF, SizeBytes: info.Size(), Changed: info.ModTime()}
	h.err = h.read(path)
	h.model.Err = h.err
	return h
}

// check looks at what the parser would stumble over.
func check(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("it can't be opened: %w", err)
	}
	defer f.Close()
	var magic [4]byte
	switch _, err := io.ReadFull(f, magic[:]); {
	case errors.Is(err, io.EOF):
		return errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is not a GGUF file")
	case err != nil:
		return fmt.Errorf("it can't be read: %w", err)
	case !bytes.Equal(magic[:], []byte("GGUF")):
		return errors.New("it is not a GGUF file")
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("it can't be read: %w", err)
	}
	return checkMetadata(f)
}

// read parses the header. Odd values in it may make the parser panic: that is an error, too.
func (h *header) read(path string) (err error) {
	f, err := parse(path, h.size)
	if err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its header can't be read: %v", r)
		}
	}()
	h.fill(f)
	return nil
}

// parse reads a file's header. The file is mapped into memory, which is twenty times as quick for a large vocabulary, but a
// file that is cut short meanwhile then faults the reader: that fault is made an error, too. The size is for the error only.
func parse(path string, size int64) (f *gguf.GGUFFile, err error) {
	if err := check(path); err != nil {
		return nil, err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its header can't be read: %v", r)
		}
	}()
	f, err = gguf.ParseGGUFFile(path, gguf.SkipLargeMetadata(), gguf.UseMMap())
	if err != nil {
		return nil, unreadable(err, uint64(max(0, size)))
	}
	if !holdsItsTensors(f) {
		return nil, truncated(uint64(f.Size))
	}
	return f, nil
}

// unreadable says in our words what keeps the parser from reading a file of this size.
func unreadable(err error, size uint64) error {
	var missing *fs.PathError
	switch text := err.Error(); {
	case errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("its part %s is missing; fetch it again", filepath.Base(missing.Path))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		strings.Contains(text, "follow the header"), strings.Contains(text, "remaining bytes"):
		return truncated(size)
	default:
		return fmt.Errorf("its header can't be read: %w", err)
	}
}

func truncated(size uint64) error {
	return fmt.Errorf("it is truncated: it has %d bytes, fewer than its header promises; fetch it again", size)
}

// holdsItsTensors tells whether the files are long enough. The parser asks that of single files only, and overlooks those
// that end between header and data.
func holdsItsTensors(f *gguf.GGUFFile) bool {
	held := uint64(0)
	for i, size := range f.SplitSizes {
		if from := uint64(max(0, f.SplitTensorDataStartOffsets[i])); uint64(size) > from {
			held += uint64(size) - from
		}
	}
	return f.TensorInfos.Bytes() <= held
}

func (h *header) fill(f *gguf.GGUFFile) {
	meta, arch := f.Metadata(), f.Architecture()
	switch arch.Type {
	case "model":
	case "projector":
		h.kind = kindProjector
		return
	default:
		h.kind = kindOther
		return
	}
	m := &h.model
	m.Type = TypeLLM
	if arch.PoolingType != 0 || !arch.AttentionCausal {
		m.Type = TypeEmbedding
	}
	m.Pooling = pooling(f, meta.Architecture)
	m.Reranker = m.Pooling == PoolingRank
	m.Experts, m.ExpertsUsed = int(arch.ExpertCount), int(arch.ExpertUsedCount)
	m.SizeBytes = int64(min(uint64(f.Size), math.MaxInt64))
	m.Architecture = meta.Architecture
	m.DisplayName = meta.Name
	m.Parameters = int64(min(uint64(meta.Parameters), math.MaxInt64))
	m.MaxContextLength = int(min(arch.MaximumContextLength, math.MaxInt32))
	m.Quantization = Quantization{Name: quantizationName(meta), BitsPerWeight: math.Round(float64(meta.BitsPerWeight)*100) / 100}
	m.SizeLabel = text(f, "general.size_label")
	m.ToolUse = strings.Contains(text(f, "tokenizer.chat_template"), "tools")
}

// poolings are the ways of pooling, by the numbers that files have for them.
var poolings = []Pooling{PoolingNone, PoolingMean, PoolingCLS, PoolingLast, PoolingRank}

// pooling is empty where the file doesn't say, or says what isn't known.
func pooling(f *gguf.GGUFFile, arch string) Pooling {
	kv, ok := f.Header.MetadataKV.Get(arch + ".pooling_type")
	if !ok {
		return ""
	}
	if n := gguf.ValueNumeric[uint32](kv); n < uint32(len(poolings)) {
		return poolings[n]
	}
	return ""
}

func quantizationName(meta gguf.GGUFMetadata) string {
	if name := meta.FileTypeDescriptor; name != "" && name != "Unknown" {
		return name
	}
	return strings.TrimPrefix(meta.FileType.String(), "MOSTLY_")
}

// text is a string of the header; empty where there is none.
func text(f *gguf.GGUFFile, key string) string {
	kv, ok := f.Header.MetadataKV.Get(key)
	if !ok || kv.ValueType != gguf.GGUFMetadataValueTypeString {
		return ""
	}
	return kv.ValueString()
}
