package endpoint

import (
	"sync"
	"time"
)

// quietTime is how long a message about a model is not repeated.
const quietTime = time.Second

type quiet struct {
	mu    sync.Mutex
	about map[string]*lastLogged
}

type lastLogged struct {
	at      time.Time
	skipped int // since
}

// tell reports whether a message about a model is to be logged now, and how many were skipped since the last one.
func (q *quiet) tell(key string) (skipped int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.about == nil {
		q.about = map[string]*lastLogged{}
	}
	last := q.about[key]
	if last == nil {
		last = &lastLogged{}
		q.about[key] = last
	}
	if time.Since(last.at) < quietTime {
		last.skipped++
		return 0, false
	}
	skipped = last.skipped
	*last = lastLogged{at: time.Now()}
	return skipped, true
}
