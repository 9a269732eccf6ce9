// Package logs keeps the newest records of this process's log in memory, so that they can be read and followed over the API,
// wherever else the log goes.
//
// A [Log] has a ring of its own for debug records. Engines write so many of these that in a common ring they would soon displace
// last night's warnings.
package logs

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/ring"
)

// The bounds of what is kept: records above debug level, other records, and the bytes of each kind.
const (
	mostNotable = 4000
	mostDebug   = 6000
	mostBytes   = 4 << 20
)

// Record is an entry of the log.
type Record struct {
	Time    time.Time
	Level   slog.Level
	Logger  string
	Message string
	Fields  json.RawMessage // a JSON object; nil: there are none, or Source has them
	// Source has the fields of a record that is only encoded when it is read; nil: they are in Fields.
	Source Source

	// What records are looked for by, from the fields of the same names.
	Model, Instance, Request string

	after Position // the position after it
}

// Source has a record's fields. It is kept as long as the record, and must not change.
type Source interface {
	Attrs() []slog.Attr
}

// Object returns the record's fields as a JSON object, or nil if there are none.
func (r *Record) Object() json.RawMessage {
	if r.Source == nil {
		return r.Fields
	}
	return Fields(r.Source.Attrs()...).Fields
}

const outputMessage = "engine"

// IsOutput reports whether the record is a line of an engine's output.
func (r *Record) IsOutput() bool { return r.Message == outputMessage && r.Level < slog.LevelInfo }

// Position is a place in a log: how many records above debug level, and how many others, come before it.
type Position [2]uint64

// order is how many records come before the position.
func (p Position) order() uint64 { return p[0] + p[1] }

const (
	notable = iota
	debug
)

// Log is what is kept of a log. Its methods may be called from any goroutine.
type Log struct {
	boot  string // tells the positions of this process from those of an earlier one
	rings [2]*ring.Ring[*Record]

	mu   sync.Mutex // held while a record is added or the rings are read, so no reader sees a record before an earlier one
	next Position

	attentive atomic.Int32 // readers that follow records at debug level
}

// New returns an empty log.
func New() *Log {
	return newLog(mostNotable, mostDebug, strconv.FormatInt(time.Now().UnixMilli(), 36))
}

func newLog(mostNotable, mostDebug int, boot string) *Log {
	return &Log{boot: boot, rings: [2]*ring.Ring[*Record]{
		ring.New[*Record](mostNotable, mostBytes),
		ring.New[*Record](mostDebug, mostBytes),
	}}
}

// What a record takes besides its texts, and what a [Source] takes, in bytes.
const (
	recordSize = 200
	sourceSize = 500
)

// Add appends a record, which must not change any more.
func (l *Log) Add(r *Record) {
	which := notable
	if r.Level < slog.LevelInfo {
		which = debug
	}
	size := recordSize + len(r.Message) + len(r.Fields) + len(r.Model) + len(r.Instance) + len(r.Request)
	if r.Source != nil {
		size += sourceSize
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next[which]++
	r.after = l.next
	l.rings[which].Add(r, size)
}

// ID is the record's id, which names the position after it.
func (l *Log) ID(r *Record) string { return l.idOf(r.after) }

func (l *Log) idOf(p Position) string {
	return l.boot + "-" + strconv.FormatUint(p[notable], 10) + "-" + strconv.FormatUint(p[debug], 10)
}

// After returns the position after the record with an id. It is the beginning if an earlier process gave the id. It reports
// false for a text that is no id.
func (l *Log) After(id string) (p Position, ok bool) {
	parts := strings.Split(id, "-")
	if len(parts) != 3 {
		return p, false
	}
	for i := range p {
		n, err := strconv.ParseUint(parts[i+1], 10, 63)
		if err != nil {
			return Position{}, false
		}
		p[i] = n
	}
	if parts[0] != l.boot {
		return Position{}, true
	}
	return p, true
}

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
