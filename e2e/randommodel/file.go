package randommodel

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// alignment is that of tensors in a file, in bytes.
const alignment = 32

// block is the number of weights of Q8 that have one scale.
const block = 32

// Write makes the model of a shape and a seed in a file, whose folder it makes if there is none. The tokenizer is that of
// another model's file.
func Write(path string, s Shape, seed uint64, other []byte) error {
	t, err := readTokenizer(other, s.Template == "")
	if err != nil {
		return fmt.Errorf("the tokenizer of a random model: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := &writer{out: bufio.NewWriterSize(file, 1<<20)}
	w.model(s, t, rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), seed))))
	return errors.Join(w.err, w.out.Flush(), file.Close())
}

// writer writes a GGUF file. After an error it writes no more.
type writer struct {
	out *bufio.Writer
	n   int64
	err error
}

func (w *writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.out.Write(p)
	w.n, w.err = w.n+int64(n), err
	return n, err
}

// put writes numbers, and texts with their lengths.
func (w *writer) put(values ...any) {
	for _, v := range values {
		if text, ok := v.(string); ok {
			w.put(uint64(len(text)))
			_, _ = io.WriteString(w, text)
			continue
		}
		if err := binary.Write(w, binary.LittleEndian, v); err != nil && w.err == nil {
			w.err = err
		}
	}
}

func (w *writer) align() {
	_, _ = w.Write(make([]byte, (alignment-w.n%alignment)%alignment))
}

func (w *writer) model(s Shape, t tokenizer, random *rand.ChaCha8) {
	fields, tensors := s.fields(len(t.silent)), s.tensors(len(t.silent))
	w.put([]byte("GGUF"), uint32(3), uint64(len(tensors)), uint64(len(fields)+len(t.fields)))
	w.body(fields, tensors, t, random)
}

// body writes what follows the number of fields.
func (w *writer) body(fields []field, tensors []tensor, t tokenizer, random *rand.ChaCha8) {
	for _, f := range fields {
		w.put(f.name)
		w.put(f.value...)
	}
	for _, f := range t.fields {
		_, _ = w.Write(f)
	}
	offset := uint64(0)
	for _, x := range tensors {
		w.put(x.name, uint32(len(x.dims)))
		for _, n := range x.dims {
			w.put(uint64(n))
		}
		w.put(x.kind, offset)
		offset += (uint64(x.size()) + alignment - 1) / alignment * alignment
	}
	for _, x := range tensors {
		w.align()
		w.weights(x, t, random)
	}
	w.align()
}

// size is the number of bytes of a tensor.
func (x tensor) size() int {
	n := x.elements()
	switch x.kind {
	case F16:
		return 2 * n
	case Q8:
		return n / block * (block + 2)
	default:
		return 4 * n
	}
}

func (x tensor) elements() int {
	n := 1
	for _, d := range x.dims {
		n *= d
	}
	return n
}

// weights writes a tensor, a row at a time. Each random weight takes a byte.
func (w *writer) weights(x tensor, t tokenizer, random *rand.ChaCha8) {
	values := make([]int8, x.dims[0])
	bytes := make([]byte, x.dims[0])
	for row := range x.elements() / x.dims[0] {
		_, _ = random.Read(bytes)
		isSilent := x.fill.silent && t.silent[row]
		for i, b := range bytes {
			values[i] = int8(b)
			if isSilent {
				values[i] = 0
			}
		}
		switch {
		case x.fill.each != nil:
			for i := range x.dims[0] {
				w.put(float32(x.fill.each(row*x.dims[0] + i)))
			}
		case x.kind == f32:
			for _, v := range values {
				w.put(float32(float64(v) * x.fill.amplitude / math.MaxInt8))
			}
		default:
			_, _ = w.Write(x.encode(values))
		}
	}
}

// encode encodes a row of random weights.
func (x tensor) encode(values []int8) []byte {
	scale := x.fill.amplitude / math.MaxInt8
	var out []byte
	for i, v := range values {
		switch {
		case x.kind == F16:
			out = binary.LittleEndian.AppendUint16(out, half(float64(v)*scale))
			continue
		case i%block == 0:
			out = binary.LittleEndian.AppendUint16(out, half(scale))
		}
		out = append(out, byte(v))
	}
	return out
}

// half converts a weight to 16 bits. It cuts instead of rounding, and takes no subnormal numbers, since no weight but 0 is that small.
func half(v float64) uint16 {
	bits := math.Float32bits(float32(v))
	exponent := int(bits>>23&0xff) - 127 + 15
	if exponent <= 0 {
		return 0
	}
	return uint16(bits>>16&0x8000) | uint16(exponent<<10) | uint16(bits>>13&0x3ff)
}
