package record

import (
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

func TestEvents_Positions(t *testing.T) {
	t.Parallel()
	l, other := NewEvents(), NewEvents()
	seen := map[string]bool{}
	for _, at := range []uint64{0, 1, 2, 1 << 40, ^uint64(0)} {
		id := l.ID(at)
		if got, isOurs, ok := l.Position(id); got != at || !isOurs || !ok || seen[id] {
			t.Errorf("%d: %s is %d, %v, %v", at, id, got, isOurs, ok)
		}
		seen[id] = true
		if _, isOurs, ok := other.Position(id); isOurs || !ok {
			t.Errorf("%s is another's, and %v, %v", id, isOurs, ok)
		}
	}
	id := l.ID(7)
	for _, wrong := range []string{"", "null", "-", "7", id[:len(id)-1], id + "x", id[9:], strings.Repeat("a", 8) + "-", l.boot + "--1", l.boot + "-" + strings.Repeat("9", 21), strings.Repeat("x", 1<<20)} {
		if _, _, ok := l.Position(wrong); ok {
			t.Errorf("%.50q is an id", wrong)
		}
	}
}

// A download's progress is told at most twice a second, every other state at once.
func TestEvents_Downloads(t *testing.T) {
	t.Parallel()
	l := NewEvents()
	const job = "job_0123456789"
	tell := func(state fetch.State, kind hub.Kind) {
		l.JobChanged(fetch.Job{Download: fetch.Download{ID: job, State: state, Kind: kind}})
	}
	tell(fetch.Downloading, 0)
	for range 50 {
		tell(fetch.Downloading, 0)
	}
	l.jobs[job] = jobEvent{fetch.Downloading, time.Now().Add(-progressEvery)}
	tell(fetch.Downloading, 0)
	tell(fetch.Downloading, 0)
	tell(fetch.Paused, 0)
	tell(fetch.Downloading, 0)
	tell(fetch.Failed, hub.NoSpace)
	tell(fetch.Downloading, 0)
	tell(fetch.Failed, hub.Cancelled)
	l.JobChanged(fetch.Job{Download: fetch.Download{ID: "job_other", State: fetch.Downloading}})
	tell(fetch.Completed, 0)
	var got []string
	events, next, lost := l.From(0, 100)
	for _, e := range events {
		got = append(got, strings.TrimPrefix(e.Type, "download."))
	}
	if want := "start progress paused start failed start cancelled start completed"; strings.Join(got, " ") != want || next != 9 || lost != 0 {
		t.Errorf("%v, want %s; next %d, lost %d", got, want, next, lost)
	}
	if len(l.jobs) != 1 {
		t.Errorf("of jobs that have ended, something is kept: %v", l.jobs)
	}
}
