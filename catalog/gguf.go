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
	"slices"
	"strings"

	gguf "github.com/gpustack/gguf-parser-go"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// parse reads the headers of a model's files: path, and the other parts of a split model. size is for error messages. The parser's own
// functions then tell what they mean. Its reading isn't used, because it has no bounds but the size of a file, which may be sparse.
func parse(path string, size int64) (f *gguf.GGUFFile, err error) {
	defer func() {
		if r := recover(); r != nil { // of the parser
			f, err = nil, fmt.Errorf("its header can't be read: %v", r)
		}
	}()
	paths := gguf.CompleteShardGGUFFilename(path)
	if paths == nil {
		paths = []string{path}
	}
	f = new(gguf.GGUFFile)
	left := newAllowance()
	for _, part := range paths {
		if err := readPart(f, part, part == path, left); err != nil {
			return nil, unreadable(err, path, uint64(max(0, size)))
		}
	}
	if kv, ok := f.Header.MetadataKV.Get("general.file_type"); ok && !kv.ValueType.IsNumeric() {
		return nil, fmt.Errorf("its header can't be read: metadata key %q holds a %v, but it must hold a number", kv.Key, kv.ValueType)
	}
	if _, named := f.Header.MetadataKV.Index(projectorTypes); named == 0 && text(f, "general.architecture") == "clip" {
		return nil, fmt.Errorf("its header can't be read: the projector declares no type under any of %v, and llama.cpp cannot load it",
			projectorTypes)
	}
	held := uint64(0) // the files may end before their tensors do
	for i, size := range f.SplitSizes {
		if from := uint64(max(0, f.SplitTensorDataStartOffsets[i])); uint64(size) > from {
			held += uint64(size) - from
		}
	}
	if f.TensorInfos.Bytes() > held {
		return nil, truncated(uint64(f.Size))
	}
	f.ModelParameters = gguf.GGUFParametersScalar(f.TensorInfos.Elements())
	if f.ModelParameters != 0 {
		f.ModelBitsPerWeight = gguf.GGUFBitsPerWeightScalar(float64(f.ModelSize) * 8 / float64(f.ModelParameters))
	}
	return f, nil
}

// projectorTypes are the keys under which a projector may say of what type it is.
var projectorTypes = []string{
	"clip.projector_type", "clip.vision.projector_type", "clip.audio.projector_type", "clip.gen.audio.projector_type",
}

var errNewType = errors.New("its weights are of a type that this lmcaddy doesn't know: a newer one may")

// complete are the errors that say all by themselves.
var complete = []error{
	errTooManyTensors, errTooManyBlocks, errTooLongArray, errTooManyPairs, errTooLongHeader, errNotUnderstood, errNewType, errEmpty,
	errNotGGUF,
}

// unreadable explains why a model of this size can't be read.
func unreadable(err error, path string, size uint64) error {
	var missing *fs.PathError
	switch {
	case slices.ContainsFunc(complete, func(ours error) bool { return errors.Is(err, ours) }):
		return err
	case errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist) && missing.Path != path:
		return fmt.Errorf("its part %s is missing; fetch it again", filepath.Base(missing.Path))
	case errors.As(err, &missing), openfiles.AreExhausted(err):
		return fmt.Errorf("it can't be opened: %w", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return truncated(size)
	default:
		return fmt.Errorf("its header can't be read: %w", err)
	}
}

var (
	errEmpty   = errors.New("it is empty")
	errNotGGUF = errors.New("it is not a GGUF file")
)

func readPart(f *gguf.GGUFFile, path string, isFirst bool, left *allowance) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var magic [4]byte
	if n, err := file.ReadAt(magic[:], 0); isFirst && (err == nil || errors.Is(err, io.EOF)) {
		switch {
		case n == 0:
			return errEmpty
		case string(magic[:]) != "GGUF":
			return errNotGGUF
		}
	}
	end, err := readGGUF(f, file, left)
	if err != nil {
		return err
	}
	alignment := int64(32)
	if kv, ok := f.Header.MetadataKV.Get("general.alignment"); ok {
		alignment = int64(kv.ValueUint32())
	}
	end += (alignment - end%alignment) % alignment
	size := gguf.GGUFBytesScalar(max(0, info.Size()))
	f.Size += size
	f.SplitSizes = append(f.SplitSizes, size)
	f.TensorDataStartOffset = end
	f.SplitTensorDataStartOffsets = append(f.SplitTensorDataStartOffsets, end)
	f.ModelSize += gguf.GGUFBytesScalar(max(0, info.Size()-end))
	return nil
}

// readGGUF adds the header of a file, and returns its length in bytes.
func readGGUF(f *gguf.GGUFFile, from io.Reader, left *allowance) (end int64, _ error) {
	m := newMetadata(from, left)
	m.visit = func(m *metadata, key string, kind uint64) (bool, error) {
		value, err := m.value(key, kind)
		if err == nil && key != "split.no" {
			f.Header.MetadataKV = append(f.Header.MetadataKV, gguf.GGUFMetadataKV{Key: key, ValueType: typeOf(kind), Value: value})
		}
		return true, err
	}
	if err := m.walk(); err != nil {
		return 0, err
	}
	f.Header.Magic, f.Header.Version = gguf.GGUFMagicGGUFLe, gguf.GGUFVersion(m.version)
	f.Header.TensorCount += m.entries
	f.Header.MetadataKVCount = uint64(len(f.Header.MetadataKV))
	for range m.entries {
		tensor, err := m.tensor()
		if err != nil {
			return 0, err
		}
		f.TensorInfos = append(f.TensorInfos, tensor)
	}
	return m.position(), nil
}

// tensor reads an entry of the list of tensors, which follows the pairs.
func (m *metadata) tensor() (t gguf.GGUFTensorInfo, _ error) {
	t.StartOffset = m.position()
	name, err := m.read(maxKey)
	if err != nil {
		return t, err
	}
	dimensions, err := m.uint(4)
	if err != nil {
		return t, err
	}
	if dimensions == 0 || dimensions > uint64(gguf.GGMLMaxDims) {
		return t, errNotUnderstood
	}
	t.Name, t.NDimensions, t.Dimensions = string(bytes.TrimSpace(name)), uint32(dimensions), make([]uint64, dimensions)
	for i := range t.Dimensions {
		if t.Dimensions[i], err = m.length(); err != nil {
			return t, err
		}
	}
	kind, err := m.uint(4)
	if err != nil {
		return t, err
	}
	t.Type = gguf.GGMLType(uint32(kind)) //nolint:gosec // it has four bytes
	if _, isKnown := t.Type.Trait(); !isKnown {
		return t, errNewType
	}
	t.Offset, err = m.uint(8)
	return t, err
}

// keptLists are the ends of the keys of arrays whose items are kept, up to the number of layers.
var keptLists = []string{
	".feed_forward_length", ".attention.head_count", ".attention.head_count_kv", ".attention.sliding_window_pattern", "general.tags",
}

func typeOf(kind uint64) gguf.GGUFMetadataValueType {
	return gguf.GGUFMetadataValueType(kind) //nolint:gosec // it has four bytes
}

// value reads a value as the parser has it.
func (m *metadata) value(key string, kind uint64) (any, error) {
	switch kind {
	case ggufString:
		return m.string()
	case ggufArray:
		return m.list(key)
	}
	size, isNumber := ggufSizes[kind]
	if !isNumber {
		return nil, errNotUnderstood
	}
	n, err := m.uint(size)
	//nolint:gosec // a number has its type's size
	switch typeOf(kind) {
	case gguf.GGUFMetadataValueTypeUint8:
		return uint8(n), err
	case gguf.GGUFMetadataValueTypeInt8:
		return int8(n), err
	case gguf.GGUFMetadataValueTypeUint16:
		return uint16(n), err
	case gguf.GGUFMetadataValueTypeInt16:
		return int16(n), err
	case gguf.GGUFMetadataValueTypeUint32:
		return uint32(n), err
	case gguf.GGUFMetadataValueTypeInt32:
		return int32(n), err
	case gguf.GGUFMetadataValueTypeFloat32:
		return math.Float32frombits(uint32(n)), err
	case gguf.GGUFMetadataValueTypeBool:
		return n != 0, err
	case gguf.GGUFMetadataValueTypeInt64:
		return int64(n), err
	case gguf.GGUFMetadataValueTypeFloat64:
		return math.Float64frombits(n), err
	default:
		return n, err
	}
}

// string reads a text; a very long one is left out.
func (m *metadata) string() (string, error) {
	length, err := m.lengthUpTo(maxText)
	if err != nil {
		return "", err
	}
	if length > maxKept {
		return "", m.pass(int64(length)) //nolint:gosec // bounded above
	}
	var text strings.Builder // grows with what there is
	_, err = io.CopyN(&text, m, int64(length))
	return strings.TrimSpace(text.String()), err
}

func (m *metadata) list(key string) (list gguf.GGUFMetadataKVArrayValue, _ error) {
	list.StartOffset = m.position()
	kind, length, err := m.arrayHead()
	if err != nil {
		return list, err
	}
	begin := m.position()
	list.Type, list.Len = typeOf(kind), length
	if length > maxBlocks || !slices.ContainsFunc(keptLists, func(end string) bool { return strings.HasSuffix(key, end) }) {
		err = m.skip(kind, length)
	} else {
		for ; err == nil && length > 0; length-- {
			var item any
			item, err = m.value("", kind)
			list.Array = append(list.Array, item)
		}
	}
	list.Size = m.position() - begin
	return list, err
}
