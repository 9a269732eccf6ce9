package logs

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reader follows a log. It isn't safe for concurrent use.
type Reader struct {
	log    *Log
	filter Filter
	at     Position
}

// Follow returns a reader of the records from a position on that pass a filter. Close has to be called.
func (l *Log) Follow(from Position, f Filter) *Reader {
	if f.Level < slog.LevelInfo {
		l.attentive.Add(1)
	}
	return &Reader{l, f, from}
}

// Close ends the reader.
func (r *Reader) Close() {
	if r.filter.Level < slog.LevelInfo {
		r.log.attentive.Add(-1)
	}
}

// mostAtOnce bounds how many records a reader takes at a time: until it has passed them on, they are kept for it.
const mostAtOnce = 64

// Next waits for records, and returns the oldest of those that there are. Where the reader was so slow that some are no longer kept, the
// first record says how many: that is known before it is known which of them would have passed the filter. The error is the context's.
func (r *Reader) Next(ctx context.Context) ([]*Record, error) {
	for {
		changed, also := r.Changed()
		if records := r.Some(); len(records) > 0 {
			return records, nil
		}
		select {
		case <-changed:
		case <-also:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Changed returns channels of which one is closed when records are added. To miss none, call it before Some. also may be nil.
func (r *Reader) Changed() (changed, also <-chan struct{}) {
	if r.filter.isVerbose() {
		also = r.log.rings[debug].Changed()
	}
	return r.log.rings[notable].Changed(), also
}

// Some is Next without waiting: there may be no records.
func (r *Reader) Some() []*Record { return r.take(r.log.view(r.at, r.filter.isVerbose())) }

// At returns the id of the position that the reader has reached.
func (r *Reader) At() string { return r.log.idOf(r.at) }

// take returns the first records of a view that pass the filter, and moves the reader behind them.
func (r *Reader) take(v view) (records []*Record) {
	if v.lost > 0 {
		records = append(records, &Record{
			Time: time.Now(), Level: slog.LevelWarn, Logger: "log", after: v.from,
			Message: "records are missing here: they came faster than they were read",
			Fields:  []byte(`{"number":` + strconv.FormatUint(v.lost, 10) + `}`),
		})
	}
	for len(records) < mostAtOnce {
		one := v.oldest()
		if one == nil {
			r.at = v.next
			break
		}
		r.at = v.within(one.after)
		if r.filter.passes(one) {
			records = append(records, one)
		}
	}
	return records
}

func (r *Record) before() Position {
	p := r.after
	if r.Level < slog.LevelInfo {
		p[debug]--
	} else {
		p[notable]--
	}
	return p
}

// Filter selects records. The zero value selects those above debug level.
type Filter struct {
	Level    slog.Level // the least; 0: info
	Output   bool       // also lines of engines' output, whatever the least level
	Models   []string   // keys of the models that the records are about; none: any
	Instance string     // empty: any
	Request  string     // empty: any
	Since    time.Time
}

// isVerbose reports whether records at debug level may pass.
func (f *Filter) isVerbose() bool { return f.Level < slog.LevelInfo || f.Output }

func (f *Filter) passes(r *Record) bool {
	switch {
	case r.Level < f.Level && (!f.Output || !r.IsOutput()):
		return false
	case f.Request != "" && r.Request != f.Request:
		return false
	case f.Instance != "" && !strings.EqualFold(r.Instance, f.Instance):
		return false
	case r.Time.Before(f.Since):
		return false
	}
	key, _, _ := strings.Cut(r.Instance, ":")
	return len(f.Models) == 0 || slices.ContainsFunc(f.Models, func(model string) bool {
		isOf := strings.EqualFold(r.Instance, model) || r.Instance != "" && strings.EqualFold(key, model)
		return isOf || strings.EqualFold(r.Model, model)
	})
}

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
