package mlx

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

	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

// maxSafetensorsHeader is the limit of the format, in bytes.
const maxSafetensorsHeader = 100_000_000

// The bounds of the headers of all files of a model together, as of a GGUF model: a sparse file has any size and takes no space on disk.
const (
	maxHeaderBytes = 1 << 27
	maxWeights     = 1 << 16
)

var (
	errTooManyWeights = fmt.Errorf("its header can't be read: it declares more than %d tensors", maxWeights)
	errLongHeaders    = fmt.Errorf("its header can't be read: it is longer than %d MiB", maxHeaderBytes>>20)
)

// boundedHeader reads a header, within what is left for all of them.
type boundedHeader struct {
	io.Reader
	left *int64
}

func (r boundedHeader) Read(p []byte) (int, error) {
	if *r.left <= 0 {
		return 0, errLongHeaders
	}
	n, err := r.Reader.Read(p[:min(int64(len(p)), *r.left)])
	*r.left -= int64(n)
	return n, err
}

// maxShards bounds the number of files of one model's weights.
const maxShards = 1 << 12

// Weights holds the headers of a folder's safetensors files.
type Weights struct {
	IsMLX    bool
	tensors  map[string]safetensor
	count    int // tensors, with those of the same name
	Bytes    int64
	Declared int64 // number of parameters according to the index; 0: unknown
	left     int64 // bytes of headers that may still be read
}

type safetensor struct {
	Type    string    `json:"dtype"`
	Shape   []float64 `json:"shape"`
	Offsets []float64 `json:"data_offsets"`
}

func (t safetensor) size() float64 {
	n := 1.0
	for _, d := range t.Shape {
		n *= max(0, d)
	}
	return n
}

func newWeights() Weights { return Weights{tensors: map[string]safetensor{}, left: maxHeaderBytes} }

// ReadWeights reads the headers of all weights in a folder. On error it returns what it has read so far.
func ReadWeights(dir string) (Weights, error) {
	w := newWeights()
	var index struct {
		Metadata struct {
			Parameters count64 `json:"total_parameters"`
		} `json:"metadata"`
		Files map[string]string `json:"weight_map"`
	}
	err := boundedfile.ReadJSON(filepath.Join(dir, indexFile), maxFile, &index)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w, fmt.Errorf("its %s can't be read: %w", indexFile, err)
	}
	w.Declared = int64(index.Metadata.Parameters)
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
			if IsWeights(e.Name()) {
				names[e.Name()] = true
			}
		}
	}
	switch {
	case len(names) == 0:
		return w, errNoWeights
	case len(names) > maxShards:
		return w, fmt.Errorf("its %s can't be read: it names more than %d files", indexFile, maxShards)
	}
	var broken error
	for _, name := range slices.Sorted(maps.Keys(names)) {
		broken = errors.Join(broken, w.read(filepath.Join(dir, name)))
	}
	return w, broken
}

func (w *Weights) read(path string) error {
	f, info, err := boundedfile.Open(path)
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
func (w *Weights) parse(text io.Reader) (data int64, err error) {
	var end float64
	err = eachField(json.NewDecoder(boundedHeader{text, &w.left}), func(d *json.Decoder, name string) error {
		if name == "__metadata__" {
			var meta lenient[struct {
				Format string `json:"format"`
			}]
			err := d.Decode(&meta)
			w.IsMLX = w.IsMLX || meta.Value.Format == "mlx"
			return err
		}
		if w.count++; w.count > maxWeights {
			return errTooManyWeights
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
	w.Bytes = min(w.Bytes+data, math.MaxInt64/2)
	return data, err
}

// Parameters counts the weights. A packed tensor holds several weights in 32 bits, and its scales and biases don't count.
func (w *Weights) Parameters(q Quantization) int64 {
	var all float64
	for name, t := range w.tensors {
		kind := path.Ext(name)
		packed, ok := w.tensors[strings.TrimSuffix(name, kind)+".weight"]
		bits := q.BitsOf(strings.TrimSuffix(name, kind))
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

// Vocabulary returns the number of tokens that the model chooses from, or 0 if its tensors don't tell.
func (w *Weights) Vocabulary() int {
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

// Widest returns the type of the largest tensor, such as "BF16".
func (w *Weights) Widest() string {
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
