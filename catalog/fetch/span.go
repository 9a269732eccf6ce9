package fetch

import (
	"cmp"
	"slices"
)

// span is the bytes of a file from one offset up to another.
type span struct{ From, To int64 }

// spans are parts of a file, in order, that neither meet nor overlap.
type spans []span

// add joins a span to the others.
func (s spans) add(n span) spans {
	if n.From >= n.To {
		return s
	}
	// the spans that n meets are [i, j)
	i, _ := slices.BinarySearchFunc(s, n.From, func(have span, from int64) int { return cmp.Compare(have.To, from) })
	j := i
	for j < len(s) && s[j].From <= n.To {
		n.From, n.To = min(n.From, s[j].From), max(n.To, s[j].To)
		j++
	}
	if j == i+1 { // the usual case: a part has grown
		s[i] = n
		return s
	}
	return slices.Replace(s, i, j, n)
}

// remove takes exactly this span out, which is one of them.
func (s spans) remove(n span) spans {
	return slices.DeleteFunc(s, func(have span) bool { return have == n })
}

// gap is the first part of a file of this size that isn't among them; it is empty when there is none.
func (s spans) gap(size int64) span {
	at := int64(0)
	for _, have := range s {
		if have.From > at {
			return span{at, have.From}
		}
		at = max(at, have.To)
	}
	return span{at, max(at, size)}
}

// bytes is how many bytes they hold.
func (s spans) bytes() int64 {
	n := int64(0)
	for _, have := range s {
		n += have.To - have.From
	}
	return n
}

// within is what of them lies below the size, if they are in order; else nothing is.
func (s spans) within(size int64) spans {
	var all spans
	last := int64(-1)
	for _, have := range s {
		if have.From <= last || have.From < 0 || have.To <= have.From {
			return nil
		}
		last = have.To
		all = all.add(span{have.From, min(have.To, size)})
	}
	return all
}
