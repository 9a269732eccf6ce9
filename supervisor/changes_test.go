package supervisor

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// changesTold collects changes as short texts.
type changesTold struct {
	mu  sync.Mutex
	all []string
}

var changeNames = map[ChangeKind]string{
	ChangeLoadBegun: "begun", ChangeProgress: "progress", ChangeLoaded: "loaded", ChangeLoadFailed: "failed",
	ChangeUnloadBegun: "leaves", ChangeUnloaded: "gone", ChangeSettings: "settings",
}

func (o *changesTold) changed(c Change) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := changeNames[c.Kind] + " " + c.Instance
	if c.Reason != "" {
		text += " " + string(c.Reason)
	}
	if c.Kind == ChangeLoadFailed && c.Why == "" || c.Kind == ChangeLoaded && c.LoadTime <= 0 || c.Spec == nil {
		text += fmt.Sprintf(" incomplete: %+v", c)
	}
	if c.Kind != ChangeProgress || len(o.all) == 0 || o.all[len(o.all)-1] != text {
		o.all = append(o.all, text)
	}
}

func (o *changesTold) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string{}, o.all...)
}

func TestChanges_OfALife(t *testing.T) {
	t.Parallel()
	var o changesTold
	s, fake := startWith(t, &fakeengine.Script{Load: fakeengine.Load{Duration: 2 * progressEvery, Steps: 20, Gate: "loaded"}}, Options{Changed: o.changed}, nil)
	loaded := make(chan Info, 1)
	go func() {
		info, err := s.Load(t.Context(), fakeSpec("a/b", 1), nil)
		if err != nil {
			t.Error(err)
		}
		loaded <- info
	}()
	testkit.Eventually(t, "progress is told", func() bool { return len(o.list()) == 2 })
	fake.Release("loaded")
	info := <-loaded
	if t.Failed() {
		return
	}
	pinned := *info.Spec
	pinned.Pinned = true
	s.Handle(schedule.Configured{Specs: map[uint64]*schedule.Spec{info.Gen: &pinned}})
	lease := acquire(t, s, want("a/b", 1))
	gone := make(chan error, 1)
	go func() { gone <- s.Unload(t.Context(), "a/b") }()
	testkit.Eventually(t, "it is leaving", func() bool { return s.Instances()[0].Status == schedule.Draining })
	if diff := cmp.Diff([]string{"begun a/b", "progress a/b", "loaded a/b", "settings a/b", "leaves a/b unload"}, o.list()); diff != "" {
		t.Error(diff)
	}
	lease.Release()
	if err := <-gone; err != nil {
		t.Fatal(err)
	}
	if all := o.list(); all[len(all)-1] != "gone a/b unload" || len(all) != 6 {
		t.Error(all)
	}
}

func TestChanges_OfFailures(t *testing.T) {
	t.Parallel()
	var o changesTold
	script := &fakeengine.Script{Cases: []fakeengine.Case{
		{Argv: "bad", Script: fakeengine.Script{Load: fakeengine.Load{Fail: fakeengine.LoadError("unknown model architecture: 'foobar'")}}},
		{Start: 2, Script: fakeengine.Script{PortTaken: true}},
		{Start: 3, Script: fakeengine.Script{Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 1, Do: fakeengine.Crash}}}}}},
	}}
	s, _ := startWith(t, script, Options{Changed: o.changed}, nil)
	if _, err := s.Load(t.Context(), fakeSpec("a/bad", 1), nil); err == nil {
		t.Error("it loads")
	}
	lease := acquire(t, s, want("a/b", 1)) // at the second attempt
	if _, err := chat(t.Context(), lease); err == nil {
		t.Error("it doesn't crash")
	}
	lease.Release()
	told := func() []string { // a load that takes long has progress, too
		return slices.DeleteFunc(o.list(), func(text string) bool { return strings.HasPrefix(text, changeNames[ChangeProgress]) })
	}
	testkit.Eventually(t, "the crash is told", func() bool { return len(told()) == 5 })
	if diff := cmp.Diff([]string{"begun a/bad", "failed a/bad", "begun a/b", "loaded a/b", "gone a/b"}, told()); diff != "" {
		t.Error(diff)
	}
}

// However many events there are, progress is told at most once in progressEvery.
func TestChanges_ProgressIsBounded(t *testing.T) {
	t.Parallel()
	var count int
	s := &Supervisor{options: Options{Changed: func(c Change) {
		if c.Kind == ChangeProgress {
			count++
		}
	}}}
	in := &schedule.Instance{ID: "a/b", Gen: 1, Spec: fakeSpec("a/b", 1)}
	s.state.Instances = []*schedule.Instance{in}
	now := time.Now()
	for i := range 1001 { // two seconds
		in.Status, in.Progress = schedule.Loading, float64(i)/1000
		s.observe(now.Add(time.Duration(i) * 2 * time.Millisecond))
	}
	if count != 8 {
		t.Errorf("%d events in two seconds", count)
	}
}

// After an event by which nothing has changed, nothing is allocated.
func TestChanges_NoneCostNothing(t *testing.T) {
	s := &Supervisor{options: Options{Changed: func(Change) {}}}
	s.state.Instances = []*schedule.Instance{{ID: "a/b", Gen: 1, Spec: fakeSpec("a/b", 1), Status: schedule.Ready}, {ID: "c/d", Gen: 2, Spec: fakeSpec("c/d", 1), Status: schedule.Starting}}
	now := time.Now()
	s.observe(now)
	if n := testing.AllocsPerRun(100, func() { s.observe(now) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
