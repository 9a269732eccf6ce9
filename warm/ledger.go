package warm

import (
	"encoding/json"
	"io"
	"os"
	"time"
)

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

// account counts what was written, whatever becomes of it. It returns how many bytes may be kept of all states.
func (s *Store) account(model string, bytes int64, now time.Time) (size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size = s.size()
	bytes = min(bytes, size+1) // a file with holes may look huge
	s.ledger.add(bytes, now)
	s.count(model).Written += bytes
	return size
}

// mayWrite reports whether the bound of the day allows this many more bytes. The caller holds mu.
func (s *Store) mayWrite(bytes int64, now time.Time) bool {
	s.ledger.add(0, now)
	if s.ledger.Bytes+bytes <= s.daily() {
		return true
	}
	if !s.ledger.warned {
		s.ledger.warned = true
		s.log.Warn("as much was written today as may be, so no more states of prompts are saved before midnight UTC; "+
			"warm { daily } changes the bound", "written", s.ledger.Bytes, "daily", s.daily())
	}
	return false
}

// note replaces one of the small files beside the states.
func (s *Store) note(name string, content []byte) {
	if err := s.replace(name, content); err != nil {
		s.log.Warn("what was written and measured couldn't be noted", "file", name, "error", err)
	}
}
