package jsonbody

import (
	"slices"
	"sort"
	"sync"
)

// Cut is a place in a body that this server has written where a long text of the client's body belongs, which isn't copied.
type Cut struct {
	At   int // in Raw, within a string
	Text []byte
}

// Size returns the length of the body's JSON.
func (b *Body) Size() int {
	size := len(b.Raw)
	for i := range b.cuts {
		size += len(b.cuts[i].Text)
	}
	return size
}

// maxScratch is the largest buffer that is kept for other whole bodies, in bytes.
const maxScratch = 4 << 20

var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Whole calls a function with the body without cuts. If there are any, it is a copy, which the function must not keep.
func (b *Body) Whole(do func(*Body)) {
	if len(b.cuts) == 0 {
		do(b)
		return
	}
	buffer := scratch.Get().(*[]byte)
	*buffer = slices.Grow((*buffer)[:0], b.Size())
	for _, piece := range b.appendPieces(nil, 0, len(b.Raw)) {
		*buffer = append(*buffer, piece...)
	}
	do(b.joined(*buffer))
	if cap(*buffer) <= maxScratch {
		scratch.Put(buffer)
	}
}

// joined returns the body as found in its joined pieces.
func (b *Body) joined(raw []byte) *Body {
	sizes := make([]int, len(b.cuts)+1) // of the texts before each cut
	for i := range b.cuts {
		sizes[i+1] = sizes[i] + len(b.cuts[i].Text)
	}
	moved := func(at int) int {
		return at + sizes[sort.Search(len(b.cuts), func(i int) bool { return b.cuts[i].At >= at })]
	}
	whole := &Body{Raw: raw, fields: slices.Clone(b.fields), Messages: slices.Clone(b.Messages)}
	for i := range whole.fields {
		f := &whole.fields[i]
		f.from, f.value, f.to = moved(f.from), moved(f.value), moved(f.to)
	}
	for i := range whole.Messages {
		m := &whole.Messages[i]
		m.From, m.To = moved(m.From), moved(m.To)
	}
	return whole
}

// Message returns the JSON of a message, which must not be changed.
func (b *Body) Message(i int) []byte { return b.part(b.Messages[i].From, b.Messages[i].To) }

// part returns a part of the body.
func (b *Body) part(from, to int) []byte {
	if len(b.cutsIn(from, to)) == 0 {
		return b.Raw[from:to]
	}
	return slices.Concat(b.appendPieces(nil, from, to)...)
}

// appendPieces appends the pieces of a part of the body.
func (b *Body) appendPieces(dst [][]byte, from, to int) [][]byte {
	for _, cut := range b.cutsIn(from, to) {
		dst = append(dst, b.Raw[from:cut.At], cut.Text)
		from = cut.At
	}
	return append(dst, b.Raw[from:to])
}

// cutsIn returns the cuts within a part of the body.
func (b *Body) cutsIn(from, to int) []Cut {
	if len(b.cuts) == 0 {
		return nil
	}
	first := sort.Search(len(b.cuts), func(i int) bool { return b.cuts[i].At > from })
	last := first
	for last < len(b.cuts) && b.cuts[last].At < to {
		last++
	}
	return b.cuts[first:last]
}
