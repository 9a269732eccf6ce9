// Package logs keeps the newest records of this process's log in memory, so that they can be read and followed over the API,
// wherever else the log goes.
//
// A [Log] has a ring of its own for debug records. Engines write so many of these that in a common ring they would soon displace
// last night's warnings.
package logs

import (
	"encoding/json"
	"log/slog"
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
