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
	"slices"
	"strings"
	"time"

	gguf "github.com/gpustack/gguf-parser-go"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// header is what a file says of itself, for as long as it has this size and time.
type header struct {
	size    int64
	changed time.Time
	parts   string // the state of its other files
	kind    kind
	model   Model // without what depends on where the file lies
	err     error
	unread  bool // it couldn't be opened: that may pass without a trace
}

type kind uint8

const (
	kindModel kind = iota
	kindProjector
	kindOther
)

func (h header) describes(f *found) bool {
	return !h.unread && h.size == f.size && h.changed.Equal(f.changed) && h.parts == f.parts && h.model.Format == f.format
}

// brokenHeader is of what can't be used.
func brokenHeader(f *found, reason error) header {
	h := header{size: f.size, changed: f.changed, parts: f.parts, err: reason}
	h.model = Model{Format: f.format, SizeBytes: f.size, Changed: f.changed, Err: reason}
	return h
}

// readHeader never fails: the error is part of what is known of the file.
func readHeader(f *found) header {
	h := brokenHeader(f, nil)
	switch {
	case f.read != nil:
		h.err = h.readBy(f.read, f.path)
	case f.format == FormatMLX:
		h.err = h.readMLX(f.path)
	default:
		h.err = h.read(f.path)
	}
	var unreadable *fs.PathError
	h.unread = errors.As(h.err, &unreadable)
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
	left := newAllowance()
	if err := checkHeader(f, left); err != nil {
		return err
	}
	return checkParts(path, left)
}

// checkParts looks at the headers of a split model's other parts, up to one that can't be opened: that is for the parser to tell of.
func checkParts(path string, left *allowance) error {
	for _, part := range gguf.CompleteShardGGUFFilename(path) {
		if part == path {
			continue
		}
		f, err := os.Open(part)
		if openfiles.AreExhausted(err) {
			return err // the parser may find one again by then, and would read what nobody has checked
		}
		if err != nil {
			return nil
		}
		err = checkHeader(f, left)
		_ = f.Close() // it was only read
		if err != nil {
			return err
		}
	}
	return nil
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
	switch {
	case arch.Type == "projector":
		h.kind = kindProjector
		h.model.Vision = arch.ClipHasVisionEncoder || !arch.ClipHasAudioEncoder
		return
	case arch.Type != "model", isOther(f):
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
	m.Quantization = Quantization{Name: quantizationName(meta), BitsPerWeight: bitsPerWeight(f.TensorInfos)}
	m.SizeLabel = text(f, "general.size_label")
	m.Description = short(text(f, "general.description"))
	template := text(f, "tokenizer.chat_template")
	m.ToolUse = takesTools(template) || text(f, "tokenizer.chat_template.tool_use") != ""
	if m.Type == TypeLLM {
		m.Reasoning = reasoningOf(template)
	}
}

// bitsPerWeight is the average size of the weights that the quantization is of. Norms, biases and position embeddings stay in
// 32 bits whatever the quantization is: in a large model they are nothing, in a tiny one they would make a sixth of the figure.
func bitsPerWeight(tensors gguf.GGUFTensorInfos) float64 {
	var bytes, weights, all uint64
	for i := range tensors {
		n := tensors[i].Elements()
		all += n
		if tensors[i].Type != gguf.GGMLTypeF32 {
			weights += n
			bytes += tensors[i].Bytes()
		}
	}
	if all == 0 {
		return 0
	}
	if weights == 0 || weights < all/2 { // a model of 32 bits
		bytes, weights = tensors.Bytes(), all
	}
	return math.Round(float64(bytes)*8/float64(weights)*100) / 100
}

// others are the architectures of what makes no text: pictures, sounds, and encoders for them.
var others = []string{
	"diffusion", "imatrix", "controlvector", "flux", "sd1", "sd2", "sd3", "sdxl", "wan", "qwen_image", "lumina2", "aura", "hidream",
	"ltxv", "hyvid", "cosmos", "pig", "whisper", "wavtokenizer-dec", "snac-dec", "t5encoder",
}

// isOther tells whether a file that calls itself a model is none that an engine could load: a vocabulary alone, a model for
// pictures, or what has a type of its own.
func isOther(f *gguf.GGUFFile) bool {
	if kind := text(f, "general.type"); kind != "" && kind != "model" {
		return true
	}
	return slices.Contains(others, text(f, "general.architecture")) || len(f.TensorInfos) == 0
}

// maxDescription bounds a description, in bytes.
const maxDescription = 1 << 12

// short is a text of bounded length.
func short(s string) string {
	if len(s) <= maxDescription {
		return s
	}
	return strings.ToValidUTF8(s[:maxDescription], "") + "…"
}

// poolings are the ways of pooling, by the numbers that files have for them.
var poolings = []Pooling{PoolingNone, PoolingMean, PoolingCLS, PoolingLast, PoolingRank}

// pooling is empty where the file doesn't say, or says what isn't known.
func pooling(f *gguf.GGUFFile, arch string) Pooling {
	kv, ok := f.Header.MetadataKV.Get(arch + ".pooling_type")
	if !ok {
		return ""
	}
	if n := gguf.ValueNumeric[uint32](kv); n < uint32(len(poolings)) { //nolint:gosec // five
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
