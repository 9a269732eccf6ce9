package record

import (
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/ring"
)

// The bounds of the events that are kept for those that follow them.
const (
	mostEvents     = 8192
	mostEventBytes = 4 << 20
)

// Events is a ring of the newest events. A reader has a position in it, so a slow reader delays nobody.
type Events struct {
	*ring.Ring[*Event]
	boot string // tells the positions of this process from those of an earlier one

	mu   sync.Mutex
	jobs map[string]jobEvent // by id; those that have not ended
}

// NewEvents returns an empty log of events.
func NewEvents() *Events {
	return &Events{Ring: ring.New[*Event](mostEvents, mostEventBytes), boot: strings.ToLower(rand.Text()[:8]), jobs: map[string]jobEvent{}}
}

func (l *Events) add(e *Event, size int) {
	e.At = time.Now()
	l.Add(e, size)
}

// ID returns an id for a position.
func (l *Events) ID(position uint64) string { return l.boot + "-" + strconv.FormatUint(position, 10) }

// Position returns the position with an id. isOurs is false if an earlier process gave the id. ok is false for a text that is no id.
func (l *Events) Position(id string) (position uint64, isOurs, ok bool) {
	boot, number, _ := strings.Cut(id, "-")
	position, err := strconv.ParseUint(number, 10, 64)
	return position, boot == l.boot, err == nil && len(boot) == len(l.boot)
}
