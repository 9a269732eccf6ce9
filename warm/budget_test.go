package warm

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// owned returns a state of the given size that belongs to a conversation of its own.
func owned(owner, message string, bytes int64) prefix.State {
	st := state(chain(message))
	st.Owner, st.Bytes = owner, bytes
	return st
}

// kept returns the bytes of the states that are kept, with their owners, the last used one first.
func (w *world) kept() []string {
	w.t.Helper()
	got := []string{}
	for _, l := range w.List() {
		got = append(got, l.Owner)
	}
	w.hasOnly(len(got))
	return got
}

// TestBudget_LeastRecentlyUsed: there are never more bytes than may be, and those that were used last stay.
func TestBudget_LeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Configure(Settings{Size: 3000})
	h := w.shelf()
	for _, message := range []string{"a", "b", "c"} {
		w.put(h, owned("ann", message, 1000))
		w.wait(time.Second)
	}
	w.must(w.lay(h, chain("a")))
	w.wait(time.Second)
	w.put(h, owned("ann", "d", 1500)) // takes the place of b and c
	for message, want := range map[string]int{"a": 100, "b": 0, "c": 0, "d": 100} {
		if got := w.finds(h, chain(message)); got != want {
			t.Errorf("%s: %d tokens", message, got)
		}
	}
	w.hasOnly(2)
	w.engineWrites(h, "saved", 3001)
	if err := h.Put("saved", owned("ann", "e", 3001)); err == nil {
		t.Error("what has no room is kept")
	}
	w.hasOnly(2)
	w.Configure(Settings{Size: 2000})
	w.hasOnly(1)
	if w.finds(h, chain("d")) == 0 {
		t.Error("the wrong one was deleted")
	}
}

// TestBudget_Owners: nobody takes more than half from others, but all of it while there is room.
func TestBudget_Owners(t *testing.T) {
	t.Parallel()
	type step struct {
		owner string
		bytes int64
	}
	for name, tt := range map[string]struct {
		steps []step
		want  []string // owners, the last used state first
	}{
		"one alone has all":                 {[]step{{"ann", 1000}, {"ann", 1000}, {"ann", 1000}, {"ann", 1000}}, []string{"ann", "ann", "ann", "ann"}},
		"more than half while there's room": {[]step{{"bob", 500}, {"ann", 1000}, {"ann", 1000}, {"ann", 1000}}, []string{"ann", "ann", "ann", "bob"}},
		"the greedy one pays for another": {
			[]step{{"bob", 500}, {"ann", 1000}, {"ann", 1000}, {"ann", 1000}, {"bob", 500}, {"bob", 500}}, []string{"bob", "bob", "ann", "ann", "bob"},
		},
		"the greedy one pays for itself": {
			[]step{{"bob", 500}, {"ann", 1000}, {"ann", 1000}, {"ann", 1000}, {"ann", 1000}}, []string{"ann", "ann", "ann", "bob"},
		},
		"halves are left alone": {
			[]step{{"bob", 1000}, {"bob", 1000}, {"ann", 1000}, {"ann", 1000}, {"bob", 1000}}, []string{"bob", "ann", "ann", "bob"},
		},
		"exactly half isn't too much": {
			[]step{{"bob", 1000}, {"ann", 1000}, {"ann", 1000}, {"cid", 1000}, {"cid", 500}}, []string{"cid", "cid", "ann", "ann"},
		},
		"nobody has half, so the oldest goes": {
			[]step{{"ann", 1500}, {"bob", 1500}, {"cid", 900}, {"dan", 500}}, []string{"dan", "cid", "bob"},
		},
		"one alone may have a large one":                 {[]step{{"ann", 2000}, {"ann", 3000}}, []string{"ann"}},
		"as large as all":                                {[]step{{"ann", 1000}, {"ann", 4000}}, []string{"ann"}},
		"exactly a half":                                 {[]step{{"bob", 1500}, {"bob", 1500}, {"ann", 2000}}, []string{"ann", "bob"}},
		"more than half that just fits":                  {[]step{{"bob", 1000}, {"ann", 3000}}, []string{"ann", "bob"}},
		"a state of more than half, while there is room": {[]step{{"bob", 1000}, {"ann", 2500}}, []string{"ann", "bob"}},
		"a state of more than half has no right to it":   {[]step{{"bob", 1000}, {"bob", 1000}, {"ann", 2500}}, []string{"bob", "bob"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Configure(Settings{Size: 4000})
			h := w.shelf()
			for i, s := range tt.steps {
				w.engineWrites(h, "saved", int(s.bytes))
				_ = h.Put("saved", owned(s.owner, string(rune('a'+i)), s.bytes)) // what comes of it is in want
				w.wait(time.Second)
			}
			if diff := cmp.Diff(tt.want, w.kept()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestBudget_AnyOrder puts and uses states of several owners at random. There are never more bytes than may be, and no owner with at
// most half of them loses any for one that has more.
func TestBudget_AnyOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const size = 20000
	w.Configure(Settings{Size: size})
	h := w.shelf()
	random := rand.New(rand.NewPCG(1, 2))
	owners := []string{"ann", "ann", "ann", "ann", "bob", "cid"}
	for i := range 150 {
		w.wait(time.Second)
		owner, bytes := owners[random.IntN(len(owners))], 1+random.Int64N(6000)
		before := w.heldBy()
		w.engineWrites(h, "saved", int(bytes))
		st := owned(owner, "", bytes)
		st.Prompt = chain(string(rune('a'+i%26)), string(rune('a'+i/26)))
		err := h.Put("saved", st)
		after, sum := w.heldBy(), int64(0)
		for _, bytes := range after {
			sum += bytes
		}
		if sum > size {
			t.Fatalf("%d: %d bytes are kept", i, sum)
		}
		if err == nil && before[owner]+bytes > size/2 && len(before) > 1 {
			for other, bytes := range before {
				if other != owner && bytes <= size/2 && after[other] < bytes && after[owner] > size/2 {
					t.Fatalf("%d: %s had %d bytes, and lost some to %s, who has %d", i, other, bytes, owner, after[owner])
				}
			}
		}
		if list := w.List(); len(list) > 0 && random.IntN(3) == 0 {
			_ = w.lay(h, st.Prompt[:1])
		}
	}
	w.hasOnly(len(w.List()))
}

func (w *world) heldBy() map[string]int64 {
	held := map[string]int64{}
	for _, l := range w.List() {
		held[l.Owner] += l.Bytes
	}
	return held
}

func TestBudget_Age(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.Configure(Settings{MaxAge: time.Hour})
	w.put(h, state(chain("a")))
	w.put(h, state(chain("b")))
	w.wait(time.Hour)
	w.must(w.lay(h, chain("a")))
	w.tidy()
	w.hasOnly(2)
	w.wait(time.Second)
	w.tidy()
	w.hasOnly(1)
	if w.finds(h, chain("a")) != 100 {
		t.Error("the wrong one was deleted")
	}
	w.Close()
	w.wait(1000 * time.Hour)
	w.setFree(0)
	w.open()
	w.tidy()
	w.hasOnly(1) // it isn't configured yet
	w.setFree(100 * gib)
	w.open()
	w.Configure(Settings{})
	w.hasOnly(1)
	w.Configure(Settings{MaxAge: time.Hour})
	w.hasOnly(0)
}

// TestBudget_TheDisksFreeSpace: what others need of the disk isn't taken, and given back.
func TestBudget_TheDisksFreeSpace(t *testing.T) {
	t.Parallel()
	const reserve = mostReserve
	w := newWorld(t)
	h := w.shelf()
	w.Configure(Settings{Size: 10000})
	for _, message := range []string{"a", "b", "c"} {
		w.put(h, owned("ann", message, 1000))
		w.wait(time.Second)
	}
	w.setFree(reserve + 500)
	if !h.Admits(500) || !h.Admits(0) {
		t.Error("what has room isn't admitted")
	}
	w.hasOnly(3)
	if h.Admits(3501) {
		t.Error("what has no room is admitted")
	}
	w.hasOnly(3)
	if !h.Admits(501) {
		t.Error("there could be room")
	}
	w.hasOnly(2)
	w.setFree(reserve - 1000)
	if h.Admits(1001) {
		t.Error("more is admitted than can be made room for")
	}
	w.engineWrites(h, "saved", 1000) // its bytes aren't free any more
	w.must(h.Put("saved", owned("ann", "d", 1000)))
	w.hasOnly(2)
	if w.finds(h, chain("d")) == 0 || w.finds(h, chain("b")) != 0 {
		t.Error("the wrong one was deleted")
	}
	w.setFree(reserve - 5000)
	w.engineWrites(h, "saved", 1000)
	continued := owned("ann", "d", 1000)
	continued.Prompt = chain("d", "e")
	if err := h.Put("saved", continued); err == nil {
		t.Error("it is kept on a full disk")
	}
	w.hasOnly(2)
	if w.finds(h, chain("d")) == 0 {
		t.Error("it has replaced another nevertheless")
	}
	w.tidy()
	w.hasOnly(0)
	if h.Admits(0) {
		t.Error("a full disk takes more")
	}
}

// TestBudget_ASmallDisk keeps a tenth of it free, and everything may have to go for that.
func TestBudget_ASmallDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.total = 5 * gib
	h := w.shelf()
	w.put(h, owned("ann", "a", 1000))
	w.setFree(gib/2 + 500)
	if h.Admits(1501) {
		t.Error("more is admitted than can be made room for")
	}
	w.hasOnly(1)
	if !h.Admits(500) {
		t.Error("there is room")
	}
	w.hasOnly(1)
	if !h.Admits(1500) {
		t.Error("there could be room")
	}
	w.hasOnly(0)
}

// TestBudget_ADiskThatDoesNotTell how much is free: writing shows.
func TestBudget_ADiskThatDoesNotTell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(dir, nil, WithDisk(func() (int64, int64, error) { return 0, 0, errors.New("unknown") }))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.usual != unknownSize || s.room() < math.MaxInt64/4 {
		t.Errorf("size %d, room %d", s.usual, s.room())
	}
	s, err = Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if free, total, err := s.disk(); err != nil || free < 0 || total < free || total == 0 {
		t.Errorf("%d of %d, %v", free, total, err)
	}
}

func TestBudget_Defaults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		free        int64
		settings    Settings
		size, daily int64
	}{
		"a tenth of what is free": {100 * gib, Settings{}, 10 * gib, 100 * gib},
		"at most 50 GiB":          {5000 * gib, Settings{}, 50 * gib, 256 * gib},
		"at least 64 GiB a day":   {10 * gib, Settings{}, gib, 64 * gib},
		"of the settings":         {100 * gib, Settings{Size: 20 * gib}, 20 * gib, 200 * gib},
		"all of the settings":     {100 * gib, Settings{Size: 20 * gib, Daily: 5}, 20 * gib, 5},
		"a size without bounds":   {100 * gib, Settings{Size: math.MaxInt64}, math.MaxInt64, 256 * gib},
	} {
		w := newWorld(t)
		w.setFree(tt.free)
		w.open()
		w.Configure(tt.settings)
		if size, daily := w.size(), w.daily(); size != tt.size || daily != tt.daily {
			t.Errorf("%s: size %d, daily %d", name, size, daily)
		}
	}
	w := newWorld(t) // what it has itself doesn't make it smaller at each start
	w.put(w.shelf(), owned("ann", "a", 100000))
	w.setFree(100*gib - 100000)
	w.open()
	if w.usual != 10*gib {
		t.Errorf("%d bytes", w.usual)
	}
}

// TestBudget_Daily: no more is written in a day than may be, also by several processes.
func TestBudget_Daily(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Configure(Settings{Size: 1e6, Daily: 3000})
	h := w.shelf()
	w.put(h, owned("ann", "a", 1000))
	w.engineWrites(h, "saved", 1000)
	if err := h.Put("saved", owned("ann", "b", 1001)); err == nil { // was written, too
		t.Error("it is kept")
	}
	w.put(h, owned("ann", "c", 500))
	if h.Admits(501) || !h.Admits(500) {
		t.Error("the wrong ones are admitted")
	}
	w.logged("midnight", 1)
	w.open()
	w.Configure(Settings{Size: 1e6, Daily: 3000})
	h = w.shelf()
	if h.Admits(501) || h.Admits(502) || !h.Admits(500) {
		t.Error("the wrong ones are admitted after a restart")
	}
	w.logged("midnight", 2)
	w.logged("couldn't be noted", 0)
	w.wait(12 * time.Hour) // at midnight
	if !h.Admits(3000) {
		t.Error("not even the next day")
	}
}

func TestShelf_Admits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(w *world, h *Shelf)
		bytes  int64
		want   bool
	}{
		"a state":         {bytes: 1000, want: true},
		"of unknown size": {want: true},
		"as large as all": {bytes: 10 * gib, want: true},
		"larger":          {bytes: 10*gib + 1},
		"switched off":    {change: func(w *world, _ *Shelf) { w.Configure(Settings{Off: true}) }},
		"on again":        {change: func(w *world, _ *Shelf) { w.Configure(Settings{Off: true}); w.Configure(Settings{}) }, want: true},
		"its model gone":  {change: func(w *world, _ *Shelf) { w.DeleteModel("ann/model") }},
		"another one":     {change: func(w *world, _ *Shelf) { w.DeleteModel("ann/models") }, want: true},
		"the shelf ended": {change: func(_ *world, h *Shelf) { h.Close() }},
		"the store ended": {change: func(w *world, _ *Shelf) { w.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.shelf()
			if tt.change != nil {
				tt.change(w, h)
			}
			if got := h.Admits(tt.bytes); got != tt.want {
				t.Errorf("admitted: %v", got)
			}
		})
	}
}

// TestBudget_ACrampedDiskIsToldOf: once each time that it begins, also at the start.
func TestBudget_ACrampedDiskIsToldOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	told := func(when string, want int) {
		t.Helper()
		if got := strings.Count(w.log.String(), "the disk is nearly full"); got != want {
			t.Errorf("%s: it is told %d times, want %d", when, got, want)
		}
	}
	h := w.shelf()
	w.Configure(Settings{})
	h.Admits(500)
	told("there is room", 0)
	w.setFree(mostReserve + 400)
	for range 3 {
		h.Admits(500)
	}
	told("there is none for a state", 1)
	w.tidy()
	w.setFree(mostReserve)
	for range 2 {
		h.Admits(0)
		w.tidy()
	}
	told("there was some in between", 2)
	w.setFree(100 * gib)
	w.tidy()
	told("there is room again", 2)
	w.setFree(0)
	w.Configure(Settings{Off: true})
	told("nothing is to be saved", 2)
	w.Configure(Settings{})
	w.Configure(Settings{})
	told("the start", 3)
}
