package catalog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// What a header may declare. A file of a few bytes could otherwise exhaust the memory and end the process: what is made of a header
// allocates memory for as many layers as it declares.
const (
	splitTensors = "split.tensors.count"
	maxTensors   = 1 << 16 // the largest models have about ten thousand
	blockCount   = ".block_count"
	maxBlocks    = 1 << 12 // the engine supports 512
	maxKey       = 1 << 16 // bytes; the format's limit
	maxText      = 1 << 40 // bytes; more than any file
	maxKept      = 1 << 20 // bytes, of texts that are kept; chat templates have a tenth
	maxArray     = 1 << 22 // the largest vocabularies have some hundred thousand entries
	maxPairs     = 1 << 16 // models have fewer than a hundred
	maxHeader    = 1 << 27 // bytes; a vocabulary of 256 thousand tokens with merges takes about 12 MiB
)

var (
	errTooManyTensors = fmt.Errorf("its header can't be read: it declares more than %d tensors", maxTensors)
	errTooManyBlocks  = fmt.Errorf("its header can't be read: it declares more than %d layers", maxBlocks)
	errTooLongArray   = fmt.Errorf("its header can't be read: it has an array of more than %d items", maxArray)
	errTooManyPairs   = fmt.Errorf("its header can't be read: it declares more than %d keys", maxPairs)
	errTooLongHeader  = fmt.Errorf("its header can't be read: it is longer than %d MiB", maxHeader>>20)
	errNotUnderstood  = errors.New("its header can't be read: it doesn't follow the format")
)

// allowance bounds the headers of a model's files together. A sparse file has any size and takes no space on disk: without a
// bound, anyone who may download could make the catalog read zeros for minutes.
type allowance struct {
	bytes          int64
	pairs, tensors uint64
}

func newAllowance() *allowance { return &allowance{maxHeader, maxPairs, maxTensors} }

func take(left *uint64, n uint64, tooMany error) error {
	if n > *left {
		return tooMany
	}
	*left -= n
	return nil
}

// allowed is a reader that is bounded by an allowance.
type allowed struct {
	io.Reader
	left *allowance
}

func (r allowed) Read(p []byte) (int, error) {
	if r.left.bytes <= 0 {
		return 0, errTooLongHeader
	}
	n, err := r.Reader.Read(p[:min(int64(len(p)), r.left.bytes)])
	r.left.bytes -= int64(n)
	return n, err
}

// metadataBuffer is the size of the read buffer, in bytes.
const metadataBuffer = 64 << 10

// metadata reads the key-value pairs of a GGUF header.
type metadata struct {
	*bufio.Reader
	left    *allowance
	order   binary.ByteOrder
	wide    int64 // size of a length, in bytes
	version uint32
	entries uint64 // number of tensors in this file; set by walk, like the version
	begin   int64  // what was left of the allowance before it

	// visit may read a value itself, and then returns true. If it is nil, all values are skipped.
	visit func(m *metadata, key string, kind uint64) (done bool, err error)
}

func newMetadata(f io.Reader, left *allowance) *metadata {
	buffered := bufio.NewReaderSize(allowed{f, left}, metadataBuffer)
	return &metadata{Reader: buffered, left: left, order: binary.LittleEndian, wide: 8, begin: left.bytes}
}

// The types of values in the format.
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
	switch m.version = m.order.Uint32(head[4:]); m.version {
	case 1:
		m.wide = 4
	case 2, 3:
	default:
		return fmt.Errorf("unsupported GGUF version: %d (supported: 1-3)", m.version)
	}
	var err error
	if m.entries, err = m.length(); err != nil {
		return err
	}
	if err := take(&m.left.tensors, m.entries, errTooManyTensors); err != nil {
		return err
	}
	pairs, err := m.length()
	if err == nil {
		err = take(&m.left.pairs, pairs, errTooManyPairs)
	}
	for ; err == nil && pairs > 0; pairs-- {
		err = m.pair()
	}
	return err
}

func (m *metadata) pair() error {
	key, err := m.read(maxKey)
	if err != nil {
		return err
	}
	kind, err := m.uint(4)
	if err != nil {
		return err
	}
	switch {
	case string(key) == splitTensors:
		err = m.bound(kind, maxTensors, errTooManyTensors)
	case bytes.HasSuffix(key, []byte(blockCount)):
		err = m.bound(kind, maxBlocks, errTooManyBlocks)
	}
	if err != nil {
		return err
	}
	if m.visit != nil {
		if done, err := m.visit(m, string(key), kind); done || err != nil {
			return err
		}
	}
	return m.skip(kind, 1)
}

// bound checks the bound of a number that comes next.
func (m *metadata) bound(kind, most uint64, tooLarge error) error {
	size, isNumber := ggufSizes[kind]
	if !isNumber {
		return errNotUnderstood
	}
	b, err := m.Peek(int(size))
	if err == nil && m.number(b) > most { // a negative number is large as well
		return tooLarge
	}
	return err
}

func (m *metadata) position() int64 { return m.begin - m.left.bytes - int64(m.Buffered()) }

// skip skips values of one type.
func (m *metadata) skip(kind, count uint64) error {
	if size, ok := ggufSizes[kind]; ok {
		return m.pass(int64(count) * size) //nolint:gosec // bounded above
	}
	for ; count > 0; count-- {
		var err error
		switch kind {
		case ggufString:
			var length uint64
			if length, err = m.lengthUpTo(maxText); err == nil {
				err = m.pass(int64(length)) //nolint:gosec // bounded above
			}
		case ggufArray:
			var of, length uint64
			if of, length, err = m.arrayHead(); err == nil {
				err = m.skip(of, length)
			}
		default:
			err = errNotUnderstood
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads a text of bounded length.
func (m *metadata) read(most uint64) ([]byte, error) {
	length, err := m.lengthUpTo(most)
	if err != nil {
		return nil, err
	}
	text := make([]byte, length)
	_, err = io.ReadFull(m, text)
	return text, err
}

func (m *metadata) arrayHead() (kind, length uint64, err error) {
	if kind, err = m.uint(4); err != nil {
		return 0, 0, err
	}
	if length, err = m.length(); err != nil {
		return 0, 0, err
	}
	if kind == ggufArray { // no model has arrays of arrays
		return 0, 0, errNotUnderstood
	}
	if length > maxArray {
		return 0, 0, errTooLongArray
	}
	return kind, length, nil
}

func (m *metadata) length() (uint64, error) { return m.uint(m.wide) }

func (m *metadata) lengthUpTo(most uint64) (uint64, error) {
	length, err := m.length()
	if err == nil && length > most {
		return 0, errNotUnderstood
	}
	return length, err
}

func (m *metadata) pass(n int64) error {
	if n > m.left.bytes+int64(m.Buffered()) {
		return errTooLongHeader
	}
	for n > 0 {
		some, err := m.Discard(int(min(n, math.MaxInt32)))
		if err != nil {
			return err
		}
		n -= int64(some)
	}
	return nil
}

// uint reads an unsigned number of 1 to 8 bytes.
func (m *metadata) uint(size int64) (n uint64, err error) {
	b, err := m.Peek(int(size)) // doesn't allocate, unlike io.ReadFull; there are a million of these
	if err != nil {
		return 0, err
	}
	n = m.number(b)
	_, err = m.Discard(int(size))
	return n, err
}

// number returns the unsigned number in 1, 2, 4 or 8 bytes.
func (m *metadata) number(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(m.order.Uint16(b))
	case 4:
		return uint64(m.order.Uint32(b))
	default:
		return m.order.Uint64(b)
	}
}
