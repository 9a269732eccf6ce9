package catalog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxSafetensorsHeader is the limit of the format, in bytes.
const maxSafetensorsHeader = 100_000_000

// maxShards bounds the number of files of one model's weights.
const maxShards = 1 << 12

// weights holds the headers of a folder's safetensors files.
type weights struct {
	isMLX    bool
	tensors  map[string]safetensor
	bytes    int64
	declared int64 // number of parameters according to the index; 0: unknown
	left     *allowance
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

func newWeights() weights { return weights{tensors: map[string]safetensor{}, left: newAllowance()} }

// readWeights reads the headers of all weights in a folder. On error it returns what it has read so far.
func readWeights(dir string) (weights, error) {
	w := newWeights()
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
	names := map[string]bool{}
	for _, name := range index.Files {
		if filepath.Base(name) == name {
			names[name] = true
		}
	}
	if len(names) == 0 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return w, err
		}
		for _, e := range entries {
			if isWeights(e.Name()) {
				names[e.Name()] = true
			}
		}
	}
	switch {
	case len(names) == 0:
		return w, errNoWeights
	case len(names) > maxShards:
		return w, fmt.Errorf("its %s can't be read: it names more than %d files", mlxIndexFile, maxShards)
	}
	var broken error
	for _, name := range slices.Sorted(maps.Keys(names)) {
		broken = errors.Join(broken, w.read(filepath.Join(dir, name)))
	}
	return w, broken
}

// read adds a file's header.
func (w *weights) read(path string) error {
	f, info, err := openFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("its file %s is missing; fetch it again", filepath.Base(path))
	}
	if err != nil {
		return err
	}
	defer f.Close()
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
	data, err := w.parse(io.LimitReader(f, int64(n)))
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

// parse adds a header, and returns the number of bytes of data that it declares. The headers of all files together may have as
// many bytes and tensors as those of a GGUF model.
func (w *weights) parse(text io.Reader) (data int64, err error) {
	var end float64
	err = eachField(json.NewDecoder(allowed{text, w.left}), func(d *json.Decoder, name string) error {
		if name == "__metadata__" {
			var meta lenient[struct {
				Format string `json:"format"`
			}]
			err := d.Decode(&meta)
			w.isMLX = w.isMLX || meta.Value.Format == "mlx"
			return err
		}
		if err := take(&w.left.tensors, 1, errTooManyTensors); err != nil {
			return err
		}
		var t safetensor
		if err := d.Decode(&t); err != nil {
			return err
		}
		if len(t.Offsets) == 2 {
			end = max(end, t.Offsets[1])
		}
		w.tensors[name] = t
		return nil
	})
	data = int64(min(max(0, end), math.MaxInt64/2))
	w.bytes = min(w.bytes+data, math.MaxInt64/2)
	return data, err
}

// parameters counts the weights. A packed tensor holds several weights in 32 bits, and its scales and biases don't count.
func (w *weights) parameters(q mlxQuantization) int64 {
	var all float64
	for name, t := range w.tensors {
		kind := path.Ext(name)
		packed, ok := w.tensors[strings.TrimSuffix(name, kind)+".weight"]
		bits := q.bits(strings.TrimSuffix(name, kind))
		isPacked := ok && packed.Type == "U32" && bits > 0
		switch {
		case isPacked && (kind == ".scales" || kind == ".biases"):
		case isPacked && kind == ".weight":
			all += t.size() * 32 / float64(bits)
		default:
			all += t.size()
		}
	}
	return int64(min(all, 1<<62))
}

// The names of the matrices that have a row for each token, without the parts before them. A model without an output matrix
// uses its embeddings instead.
var (
	outputs    = []string{"lm_head.weight", "output.weight", "embed_out.weight"}
	embeddings = []string{
		"embed_tokens.weight", "wte.weight", "tok_embeddings.weight", "embed_in.weight", "word_embeddings.weight", "embeddings.weight",
		"embedding.weight",
	}
)

// vocabulary returns the number of tokens that the model chooses from, or 0 if its tensors don't tell.
func (w *weights) vocabulary() int {
	rows := map[string]float64{}
	for name, t := range w.tensors {
		if len(t.Shape) != 2 {
			continue
		}
		short := name
		for cut := true; cut; {
			cut = false
			for _, part := range []string{"language_model.", "model.", "transformer.", "backbone.", "gpt_neox."} {
				if rest, ok := strings.CutPrefix(short, part); ok {
					short, cut = rest, true
				}
			}
		}
		rows[short] = max(rows[short], t.Shape[0])
	}
	for _, name := range slices.Concat(outputs, embeddings) {
		if n := rows[name]; n > 0 && n <= math.MaxInt32 {
			return int(n)
		}
	}
	return 0
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
