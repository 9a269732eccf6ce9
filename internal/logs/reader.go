package logs

import (
	"context"
	"log/slog"
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
