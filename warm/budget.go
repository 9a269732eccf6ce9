package warm

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

const (
	gib = 1 << 30
	// mostUsual bounds the size that is chosen by the disk, and unknownSize is that of a disk that doesn't tell.
	mostUsual   = 50 * gib
	unknownSize = 10 * gib
	// mostReserve bounds what is left free of a disk, which is a tenth of it: others need room, too.
	mostReserve = gib
	// dailyOfSize, leastDaily and mostDaily choose how much is written in a day. An SSD of 1 TB is made for about 300 GB a day
	// for five years.
	dailyOfSize = 10
	leastDaily  = 64 * gib
	mostDaily   = 256 * gib
)

// size returns how many bytes may be kept. The caller holds mu.
func (s *Store) size() int64 { return cmp.Or(s.settings.Size, s.usual) }

// daily returns how many bytes may be written in a day. The caller holds mu.
func (s *Store) daily() int64 {
	if s.settings.Daily > 0 {
		return s.settings.Daily
	}
	return min(max(dailyOfSize*min(s.size(), mostDaily), leastDaily), mostDaily)
}

// held returns how many bytes are kept. The caller holds mu.
func (s *index) held() int64 {
	sum := int64(0)
	for _, e := range s.all(func(*entry) bool { return true }) {
		sum += e.record.Bytes
	}
	return sum
}

// room returns how many more bytes the disk can take; it is negative if there is less than should be free.
func (s *Store) room() int64 {
	free, total, err := s.disk()
	if err != nil {
		return math.MaxInt64 / 2 // writing will show
	}
	return free - min(total/10, mostReserve)
}

// Admits reports whether a state of about that many bytes may be written now, and makes room on the disk for it. 0: the size is unknown.
func (h *Shelf) Admits(bytes int64) bool {
	s := h.store
	room := s.room()
	s.mu.Lock()
	now := s.now()
	if h.isShut() || now.Before(s.pause) || bytes > s.size() || !s.mayWrite(bytes, now) {
		s.mu.Unlock()
		return false
	}
	var evicted []*entry
	if need := max(bytes, 1) - room; need > 0 {
		held := s.held()
		if need > held {
			s.warnCramped()
			s.mu.Unlock()
			return false
		}
		evicted = s.oldest(held-need, s.size(), nil)
		s.forget(evicted)
	}
	s.mu.Unlock()
	s.discard(evicted)
	return true
}

// warnCramped says that the disk is too full for a state, unless that was said since it last had room. The caller holds mu.
func (s *Store) warnCramped() {
	if s.cramped {
		return
	}
	s.cramped = true
	s.log.Warn("states of conversations aren't saved, because the disk is nearly full: a tenth of it, or 1 GiB if that is less, stays "+
		"free; "+
		"make room on the disk, make their folder a symbolic link to a folder on another disk while no server runs, or switch them off "+
		"(warm off)", "folder", s.dir)
}

// owners returns how many bytes are kept for each owner. The caller holds mu.
func (s *index) owners() map[string]int64 {
	owners := map[string]int64{}
	for _, e := range s.all(func(*entry) bool { return true }) {
		owners[e.record.Owner] += e.record.Bytes
	}
	return owners
}

// oldest returns the entries that have to go so that those that stay, and incoming, have at most limit bytes: the least
// recently used ones, but those of an owner with more than half of the size first, if there are others. The caller holds mu.
func (s *index) oldest(limit, size int64, incoming *prefix.State) []*entry {
	all := s.all(func(*entry) bool { return true })
	slices.SortFunc(all, func(a, b *entry) int { return a.record.Used.Compare(b.record.Used) })
	owners := s.owners()
	if incoming != nil {
		owners[incoming.Owner] += incoming.Bytes
	}
	sum := int64(0)
	for _, bytes := range owners {
		sum += bytes
	}
	var gone []*entry
	take := func(ofGreedy bool) {
		all = slices.DeleteFunc(all, func(e *entry) bool {
			bytes := e.record.Bytes
			if sum <= limit || ofGreedy && (len(owners) == 1 || owners[e.record.Owner] <= size/2) {
				return false
			}
			sum -= bytes
			owners[e.record.Owner] -= bytes
			gone = append(gone, e)
			return true
		})
	}
	take(true)
	take(false)
	return gone
}

func (s *Store) prune() {
	room := s.room()
	s.mu.Lock()
	if !s.configured || s.isOff() {
		s.mu.Unlock()
		return
	}
	now := s.now()
	gone := s.all(func(e *entry) bool { return s.settings.MaxAge > 0 && now.Sub(e.record.Used) > s.settings.MaxAge })
	s.forget(gone)
	if s.held()+room > 0 {
		s.cramped = false
	} else {
		s.warnCramped()
	}
	limit := max(0, min(s.size(), s.held()+room))
	evicted := s.oldest(limit, limit, nil)
	s.forget(evicted)
	s.mu.Unlock()
	s.discard(append(gone, evicted...))
}

// failing returns err. If it says that the disk can't be written, nothing is written for a while.
func (s *Store) failing(err error) error {
	if err == nil || errors.Is(err, errDamaged) || errors.Is(err, fs.ErrNotExist) || openfiles.AreExhausted(err) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pause = s.now().Add(diskPause)
	return err
}

// ledger is how much was written today.
type ledger struct {
	Day    string `json:"day"` // in UTC
	Bytes  int64  `json:"bytes"`
	warned bool
}

func (l *ledger) add(bytes int64, now time.Time) {
	if day := now.UTC().Format(time.DateOnly); day != l.Day {
		*l = ledger{Day: day}
	}
	l.Bytes += bytes
}

// read reads what another process has written today. A file that makes no sense is nothing.
func (l *ledger) read(path string) {
	file, _, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	var found ledger
	if json.NewDecoder(io.LimitReader(file, 1<<10)).Decode(&found) == nil && found.Bytes >= 0 && found.Bytes < 1<<50 {
		*l = found
	}
}

// mayWrite reports whether the bound of the day allows this many more bytes. The caller holds mu.
func (s *Store) mayWrite(bytes int64, now time.Time) bool {
	s.ledger.add(0, now)
	if s.ledger.Bytes+bytes <= s.daily() {
		return true
	}
	if !s.ledger.warned {
		s.ledger.warned = true
		s.log.Warn("as much was written today as may be, so no more states of prompts are saved before midnight UTC",
			"written", s.ledger.Bytes, "daily", s.daily())
	}
	return false
}

// note replaces one of the small files beside the states.
func (s *Store) note(name string, content []byte) {
	if err := s.replace(name, content); err != nil {
		s.log.Warn("what was written and measured couldn't be noted", "file", name, "error", err)
	}
}
