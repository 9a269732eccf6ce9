package catalog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxSafetensorsHeader is the limit of the format, in bytes.
const maxSafetensorsHeader = 100_000_000

// weights holds the headers of a folder's safetensors files.
type weights struct {
	isMLX    bool
	tensors  map[string]safetensor
	bytes    int64
	declared int64 // number of parameters according to the index; 0: unknown
	sees     bool  // some tensors are for images
}

type safetensor struct {
	Type    string    `json:"dtype"`
	Shape   []float64 `json:"shape"`
	Offsets []float64 `json:"data_offsets"`
}

// size returns the number of elements.
func (t safetensor) size() float64 {
	n := 1.0
	for _, d := range t.Shape {
		n *= max(0, d)
	}
	return n
}

// readWeights reads the headers of all weights in a folder. On error it returns what it has read so far.
func readWeights(dir string) (weights, error) {
	w := weights{tensors: map[string]safetensor{}}
	var index struct {
		Metadata struct {
			Parameters count64 `json:"total_parameters"`
		} `json:"metadata"`
		Files map[string]string `json:"weight_map"`
	}
	err := readJSON(filepath.Join(dir, mlxIndexFile), maxMLXFile, &index)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w, fmt.Errorf("its %s can't be read: %w", mlxIndexFile, err)
	}
	w.declared = int64(index.Metadata.Parameters)
	var names []string
	for _, name := range index.Files {
		if !slices.Contains(names, name) && filepath.Base(name) == name {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return w, err
		}
		for _, e := range entries {
			if isWeights(e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	if len(names) == 0 {
		return w, errNoWeights
	}
	slices.Sort(names)
	var broken error
	for _, name := range names {
		broken = errors.Join(broken, w.read(filepath.Join(dir, name)))
	}
	return w, broken
}

// read adds a file's header.
func (w *weights) read(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("its file %s is missing; fetch it again", filepath.Base(path))
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var length [8]byte
	if _, err := io.ReadFull(f, length[:]); err != nil {
		return truncatedPart(path)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxSafetensorsHeader {
		return fmt.Errorf("its file %s is not a safetensors file", filepath.Base(path))
	}
	if int64(n) > info.Size()-8 {
		return truncatedPart(path)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(f, text); err != nil {
		return truncatedPart(path)
	}
	data, err := w.parse(text)
	if err != nil {
		return fmt.Errorf("its file %s can't be read: %w", filepath.Base(path), err)
	}
	if info.Size()-8-int64(n) < data {
		return truncatedPart(path)
	}
	return nil
}

func truncatedPart(path string) error {
	return fmt.Errorf("its file %s is truncated; fetch it again", filepath.Base(path))
}

// parse adds a header, and returns the number of bytes of data that it declares.
func (w *weights) parse(text []byte) (data int64, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return 0, err
	}
	var end float64
	for name, raw := range all {
		if name == "__metadata__" {
			var meta struct {
				Format string `json:"format"`
			}
			w.isMLX = w.isMLX || json.Unmarshal(raw, &meta) == nil && meta.Format == "mlx"
			continue
		}
		var t safetensor
		if err := json.Unmarshal(raw, &t); err != nil {
			return 0, err
		}
		if len(t.Offsets) == 2 {
			end = max(end, t.Offsets[1])
		}
		w.tensors[name] = t
		w.sees = w.sees || isForImages(name)
	}
	data = int64(min(max(0, end), math.MaxInt64/2))
	w.bytes = min(w.bytes+data, math.MaxInt64/2)
	return data, nil
}

// isForImages reports whether a tensor is part of a vision encoder.
func isForImages(name string) bool {
	for _, part := range []string{
		"vision_tower.", "visual.", "vision_model.", "vision_encoder.", "multi_modal_projector.", "mm_projector.", "embed_vision.",
	} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// parameters counts the weights. A packed tensor holds several weights in 32 bits, and its scales and biases don't count.
func (w *weights) parameters(q mlxQuantization) int64 {
	var all float64
	for name, t := range w.tensors {
		kind := path.Ext(name)
		packed, ok := w.tensors[strings.TrimSuffix(name, kind)+".weight"]
		isPacked := ok && packed.Type == "U32" && q.Bits > 0
		switch {
		case isPacked && (kind == ".scales" || kind == ".biases"):
		case isPacked && kind == ".weight":
			all += t.size() * 32 / float64(q.Bits)
		default:
			all += t.size()
		}
	}
	return int64(min(all, 1<<62))
}

// widest returns the type of the largest tensor, such as "BF16".
func (w *weights) widest() string {
	best, size := "", -1.0
	for name, t := range w.tensors {
		if n := t.size(); n > size || n == size && name < best {
			best, size = name, n
		}
	}
	return w.tensors[best].Type
}

// count64 is like count, with a larger limit.
type count64 int64

// UnmarshalJSON never fails.
func (c *count64) UnmarshalJSON(text []byte) error {
	var n float64
	if json.Unmarshal(text, &n) == nil && n > 0 && n < 1<<62 {
		*c = count64(n)
	}
	return nil
}
