package jsonbody

import (
	"slices"
	"strings"
)

// Edit is a set of changes to the top-level fields of a body. The zero value changes nothing.
type Edit struct {
	changes []change
	// only has the names of the unchanged fields that are kept, unless they are null. nil keeps all fields.
	only map[string]bool
}

// change is what becomes of a field. Its JSON is in one of two forms; without any, the field is removed.
type change struct {
	key, value string
	large      []byte
}

func (c *change) removes() bool { return len(c.value) == 0 && len(c.large) == 0 }

func (c *change) append(dst []byte) []byte { return append(append(dst, c.value...), c.large...) }

// Set sets a field to a JSON value. The last change of a field counts.
func (e *Edit) Set(key, value string) { e.set(change{key: key, value: value}) }

// SetLarge is Set of a value that isn't copied. It must not be changed afterwards.
func (e *Edit) SetLarge(key string, value []byte) { e.set(change{key: key, large: slices.Clip(value)}) }

func (e *Edit) set(to change) {
	if c := e.find(to.key); c != nil {
		*c = to
		return
	}
	if e.changes == nil {
		e.changes = make([]change, 0, 4)
	}
	e.changes = append(e.changes, to)
}

// Remove removes a field.
func (e *Edit) Remove(key string) { e.Set(key, "") }

// Has reports whether the edit changes a field.
func (e *Edit) Has(key string) bool { return e.find(key) != nil }

// Value returns the JSON of a field of b with the changes: a part of b.Raw if it is unchanged, nil if it is absent. It is read-only.
func (e *Edit) Value(b *Body, key string) []byte {
	switch c := e.find(key); {
	case c == nil:
		return b.Value(key)
	case c.removes():
		return nil
	case c.large != nil:
		return c.large
	default:
		return []byte(c.value)
	}
}

// Only returns a copy of the edit that keeps only the fields in names: those that it sets, and others that aren't null.
func (e *Edit) Only(names map[string]bool) Edit {
	only := Edit{make([]change, 0, len(e.changes)+4), names}
	for _, c := range e.changes {
		if c.removes() || names[c.key] {
			only.changes = append(only.changes, c)
		}
	}
	return only
}

// Dropped returns the names of the fields that [Edit.Only] leaves out of a body.
func (e *Edit) Dropped(body *Body) []string {
	var names []string
	for i := range body.fields {
		if f := &body.fields[i]; e.find(string(f.key)) == nil && !e.keeps(body, f) {
			names = append(names, strings.ToValidUTF8(string(f.key), ""))
		}
	}
	return names
}

// Apply returns a copy of the body's bytes with the changes. Unchanged fields are copied byte for byte.
func (e *Edit) Apply(b *Body) []byte { return slices.Concat(e.Pieces(b)...) }

// Pieces returns the result of Apply in pieces. Unchanged fields are parts of Raw, not copies.
func (e *Edit) Pieces(b *Body) [][]byte {
	pieces := append(make([][]byte, 0, 8), openingBrace)
	run, to := -1, 0 // bounds in Raw of the piece being built; run is -1 if there is none
	end := func(at int) {
		if run >= 0 {
			pieces, run = append(pieces, b.Raw[run:at]), -1
		}
	}
	for i := range b.fields {
		f := &b.fields[i]
		c := e.find(string(f.key))
		if c != nil && c.removes() || c == nil && !e.keeps(b, f) {
			end(to)
			continue
		}
		if run < 0 {
			if len(pieces) > 1 {
				pieces = append(pieces, comma)
			}
			run = f.from
		}
		to = f.to
		if c != nil {
			end(f.value)
			pieces = append(pieces, e.Value(b, c.key))
		}
	}
	end(to)
	return append(pieces, e.tail(b, len(pieces) > 1))
}

func (e *Edit) keeps(b *Body, f *field) bool {
	return e.only == nil || e.only[string(f.key)] && IsGiven(b.Raw[f.value:f.to])
}

func (e *Edit) tail(b *Body, needsComma bool) []byte {
	grow := 2
	for _, c := range e.changes {
		if !b.has(c.key) {
			grow += len(c.key) + len(c.value) + len(c.large) + 4
		}
	}
	tail := make([]byte, 0, grow)
	for _, c := range e.changes {
		if c.removes() || b.has(c.key) {
			continue
		}
		if needsComma {
			tail = append(tail, ',')
		}
		needsComma = true
		tail = append(append(append(tail, '"'), c.key...), '"', ':')
		tail = c.append(tail)
	}
	return append(tail, '}')
}

func (e *Edit) find(key string) *change {
	for i := range e.changes {
		if e.changes[i].key == key {
			return &e.changes[i]
		}
	}
	return nil
}

var (
	comma        = []byte{','}
	openingBrace = []byte{'{'}
)
