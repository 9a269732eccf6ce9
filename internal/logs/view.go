package logs

import (
	"math"
	"slices"
)

// view is what a log keeps at one moment of the records from a position on. Its records are shared with other readers.
type view struct {
	kept [2][]*Record // by ring, each in order
	from Position     // before the oldest of them
	next Position     // after the newest of them
	lost uint64       // records from the position on that are no longer kept
}

// view returns the records from a position on. Those at debug level are left out unless verbose is set.
func (l *Log) view(from Position, verbose bool) view {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := view{from: from, next: l.next}
	for which, r := range l.rings {
		if which == debug && !verbose {
			break
		}
		kept, next, lost := r.From(from[which], math.MaxInt)
		v.kept[which], v.from[which] = kept, next-uint64(len(kept))
		v.lost += lost
	}
	return v
}

// oldest removes and returns the oldest record; nil: there is none.
func (v *view) oldest() *Record {
	which := notable
	if a, b := v.kept[notable], v.kept[debug]; len(a) == 0 || len(b) > 0 && b[0].after.order() < a[0].after.order() {
		which = debug
	}
	kept := v.kept[which]
	if len(kept) == 0 {
		return nil
	}
	v.kept[which] = kept[1:]
	return kept[0]
}

// newest removes and returns the newest record; nil: there is none.
func (v *view) newest() *Record {
	which := notable
	if a, b := v.kept[notable], v.kept[debug]; len(a) == 0 || len(b) > 0 && b[len(b)-1].after.order() > a[len(a)-1].after.order() {
		which = debug
	}
	kept := v.kept[which]
	if len(kept) == 0 {
		return nil
	}
	v.kept[which] = kept[:len(kept)-1]
	return kept[len(kept)-1]
}

// within returns a position that isn't before the view: no records are lost from there on.
func (v *view) within(p Position) Position {
	return Position{max(p[0], v.from[0]), max(p[1], v.from[1])}
}

// Last returns the newest n records that pass a filter, oldest first.
func (l *Log) Last(n int, f Filter) []*Record {
	v := l.view(Position{}, f.isVerbose())
	var found []*Record
	for len(found) < n {
		r := v.newest()
		if r == nil {
			break
		}
		if f.passes(r) {
			found = append(found, r)
		}
	}
	slices.Reverse(found)
	return found
}

// Before returns the position before the newest n records that pass a filter, or before all that are kept if there are fewer.
func (l *Log) Before(n int, f Filter) Position {
	v := l.view(Position{}, f.isVerbose())
	at := v.next
	for found := 0; found < n; {
		r := v.newest()
		if r == nil {
			break
		}
		at = r.before()
		if f.passes(r) {
			found++
		}
	}
	return v.within(at)
}
