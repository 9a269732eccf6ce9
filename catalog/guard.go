package catalog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The parser makes room for as many tensors as a split file says that all of its parts have, before it has seen one of them:
// a file of a few bytes could ask for more memory than there is, which ends the process. So that number is looked at first.
const (
	splitTensors = "split.tensors.count"
	maxTensors   = 1 << 20 // the largest models have some ten thousand
	maxKey       = 1 << 16 // in bytes, as the format has it
	maxLength    = 1 << 40 // of a text or an array; beyond any file
)

var (
	errTooManyTensors = fmt.Errorf("its header can't be read: it speaks of more than %d tensors", maxTensors)
	errNotUnderstood  = errors.New("its header can't be read: it is not as the format has it")
)

// checkMetadata walks over a header's metadata. A header that ends too early is for the parser to tell of.
func checkMetadata(f io.Reader) error {
	m := metadata{Reader: bufio.NewReaderSize(f, 64<<10), order: binary.LittleEndian, wide: 8}
	err := m.walk()
	if errors.Is(err, errTooManyTensors) || errors.Is(err, errNotUnderstood) {
		return err
	}
	return nil
}

// metadata reads the key-value pairs of a GGUF header.
type metadata struct {
	*bufio.Reader
	order binary.ByteOrder
	wide  int64 // the size of a length, in bytes
}

// The types of values, by the format's numbers.
const (
	ggufString = 8
	ggufArray  = 9
)

// ggufSizes are the sizes of the other types, in bytes.
var ggufSizes = map[uint64]int64{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

func (m *metadata) walk() error {
	var head [8]byte // magic, version
	if _, err := io.ReadFull(m, head[:]); err != nil {
		return err
	}
	if m.order.Uint32(head[4:]) > 0xffff {
		m.order = binary.BigEndian
	}
	if m.order.Uint32(head[4:]) == 1 {
		m.wide = 4
	}
	if _, err := m.length(); err != nil { // the number of tensors in this file
		return err
	}
	pairs, err := m.length()
	for ; err == nil && pairs > 0; pairs-- {
		err = m.pair()
	}
	return err
}

func (m *metadata) pair() error {
	length, err := m.length()
	if err != nil {
		return err
	}
	if length > maxKey {
		return errNotUnderstood
	}
	key := make([]byte, length)
	if _, err := io.ReadFull(m, key); err != nil {
		return err
	}
	kind, err := m.uint(4)
	if err != nil {
		return err
	}
	if string(key) != splitTensors {
		return m.skip(kind, 1)
	}
	size, isNumber := ggufSizes[kind]
	if !isNumber {
		return errNotUnderstood
	}
	n, err := m.uint(size)
	if err == nil && n > maxTensors { // a negative number is a large one, too
		return errTooManyTensors
	}
	return err
}

// skip passes over values of one type.
func (m *metadata) skip(kind, count uint64) error {
	if size, ok := ggufSizes[kind]; ok {
		if count > maxLength {
			return errNotUnderstood
		}
		return m.pass(int64(count) * size)
	}
	for ; count > 0; count-- {
		var err error
		switch kind {
		case ggufString:
			err = m.text()
		case ggufArray:
			err = m.array()
		default:
			err = errNotUnderstood
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *metadata) text() error {
	length, err := m.length()
	if err != nil {
		return err
	}
	if length > maxLength {
		return errNotUnderstood
	}
	return m.pass(int64(length))
}

func (m *metadata) array() error {
	kind, err := m.uint(4)
	if err != nil {
		return err
	}
	length, err := m.length()
	if err != nil {
		return err
	}
	if kind == ggufArray { // arrays of arrays have never been seen
		return errNotUnderstood
	}
	return m.skip(kind, length)
}

func (m *metadata) length() (uint64, error) { return m.uint(m.wide) }

func (m *metadata) pass(n int64) error {
	_, err := io.CopyN(io.Discard, m.Reader, n)
	return err
}

// uint reads a number of 1 to 8 bytes, as if it had no sign.
func (m *metadata) uint(size int64) (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(m, b[:size]); err != nil {
		return 0, err
	}
	switch size {
	case 1:
		return uint64(b[0]), nil
	case 2:
		return uint64(m.order.Uint16(b[:])), nil
	case 4:
		return uint64(m.order.Uint32(b[:])), nil
	default:
		return m.order.Uint64(b[:]), nil
	}
}
