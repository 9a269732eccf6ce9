package fetch

import (
	"cmp"
	"slices"
)

// span is the range [From, To) of a file's bytes.
type span struct{ From, To int64 }

// spans are sorted ranges of a file that neither touch nor overlap.
type spans []span

// add adds a span.
func (s spans) add(n span) spans {
	if n.From >= n.To {
		return s
	}
	// n touches the spans [i, j)
	i, _ := slices.BinarySearchFunc(s, n.From, func(have span, from int64) int { return cmp.Compare(have.To, from) })
	j := i
	for j < len(s) && s[j].From <= n.To {
		n.From, n.To = min(n.From, s[j].From), max(n.To, s[j].To)
		j++
	}
	if j == i+1 { // the common case: a span has grown
		s[i] = n
		return s
	}
	return slices.Replace(s, i, j, n)
}

// gap returns the first range below size that isn't covered; an empty one if there is none.
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

// bytes returns the number of bytes covered.
func (s spans) bytes() int64 {
	n := int64(0)
	for _, have := range s {
		n += have.To - have.From
	}
	return n
}

// within returns the spans below a size; none if they aren't in order.
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
