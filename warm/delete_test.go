package warm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// full returns a store with four states: of two owners, two models and two conversations.
func full(t *testing.T) *world {
	w := newWorld(t)
	other := w.print()
	other.Model = "bob/model"
	a, b := w.shelf(), w.shelfOf(other)
	for i, it := range []struct {
		h                   *Shelf
		owner, conversation string
	}{{a, "ann", "resp_1"}, {a, "bob", "resp_2"}, {b, "ann", "resp_1"}, {b, "bob", ""}} {
		st := state(chain(string(rune('a' + i))))
		st.Owner, st.Conversation, st.Bytes = it.owner, it.conversation, int64(1000+i)
		w.put(it.h, st)
		w.wait(time.Second)
	}
	return w
}

// TestDelete_WhatBelongsTogether is gone from the disk, too.
func TestDelete_WhatBelongsTogether(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		remove func(*world)
		want   []int64 // bytes of the states that stay, the last used one first
	}{
		"a conversation":         {func(w *world) { w.DeleteConversation("resp_1") }, []int64{1003, 1001}},
		"an unknown one":         {func(w *world) { w.DeleteConversation("resp") }, []int64{1003, 1002, 1001, 1000}},
		"none":                   {func(w *world) { w.DeleteConversation("") }, []int64{1003, 1002, 1001, 1000}},
		"an owner":               {func(w *world) { w.DeleteOwner("bob") }, []int64{1002, 1000}},
		"nobody":                 {func(w *world) { w.DeleteOwner("") }, []int64{1003, 1002, 1001, 1000}},
		"a model":                {func(w *world) { w.DeleteModel("ann/model") }, []int64{1003, 1002}},
		"a model's are cleared":  {func(w *world) { w.cleared("bob/model", 2, 2005) }, []int64{1001, 1000}},
		"all are cleared":        {func(w *world) { w.cleared("", 4, 4006) }, []int64{}},
		"those of no such model": {func(w *world) { w.cleared("cid/model", 0, 0) }, []int64{1003, 1002, 1001, 1000}},
		"switched off":           {func(w *world) { w.Configure(Settings{Off: true}) }, []int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := full(t)
			tt.remove(w)
			for range 2 {
				got := []int64{}
				for _, l := range w.List() {
					got = append(got, l.Bytes)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				w.hasOnly(len(tt.want))
				w.open()
			}
		})
	}
}

func (w *world) cleared(model string, n int, bytes int64) {
	w.t.Helper()
	if gotN, gotBytes := w.Clear(model); gotN != n || gotBytes != bytes {
		w.t.Errorf("%d states of %d bytes are deleted, want %d of %d", gotN, gotBytes, n, bytes)
	}
}

// TestDelete_WhileItIsLaid: a state that is deleted while its file is checked isn't laid.
func TestDelete_WhileItIsLaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.put(h, state(chain("a")))
	found, _ := h.Find(Query{Prompt: chain("a")})
	e := h.group.entries[found.ID]
	to := filepath.Join(h.Folder(), "x")
	_, err := h.layAs(t.Context(), e, to)
	w.must(err)
	w.Clear("")
	if err := h.laidAs(e, "x", 0); !errors.Is(err, errNoState) {
		t.Errorf("it is laid: %v", err)
	}
	if left, err := os.ReadDir(h.Folder()); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	if _, err := h.Lay(t.Context(), found.ID); !errors.Is(err, errNoState) {
		t.Errorf("Lay: %v", err)
	}
	if _, err := h.layAs(t.Context(), e, to+"2"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file: %v", err)
	}
}

// TestDelete_WhatCannotBeRemoved is removed later.
func TestDelete_WhatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.DeleteConversation("resp_2")
	obstacle := filepath.Join(w.dir, "folder")
	w.must(os.MkdirAll(filepath.Join(obstacle, "x"), 0o700))
	w.remove(obstacle) // as if it were a state's file, on a disk that is read-only
	w.remove(obstacle)
	w.logged("couldn't be removed", 1)
	w.tidy()
	w.must(os.Remove(filepath.Join(obstacle, "x")))
	w.tidy()
	if _, err := os.Stat(obstacle); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestDelete_WhileUseIsWritten: a description that is written late doesn't bring a state back.
func TestDelete_WhileUseIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.put(h, state(chain("a")))
	found, _ := h.Find(Query{Prompt: chain("a")})
	e := h.group.entries[found.ID]
	w.must(w.lay(h, chain("a")))
	w.Clear("")
	w.writeUse([]*entry{e}, []record{e.record})
	w.hasOnly(0)
}

func TestList(t *testing.T) {
	t.Parallel()
	w := full(t)
	w.must(w.lay(w.shelf(), chain("a")))
	at := func(second int) time.Time { return time.Date(2026, 11, 22, 12, 0, second, 0, time.UTC) }
	want := []Listed{
		{Model: "ann/model", State: prefix.State{Owner: "ann", Conversation: "resp_1", Tokens: 110, Bytes: 1000}, Created: at(0), Used: at(4)},
		{Model: "bob/model", State: prefix.State{Owner: "bob", Tokens: 110, Bytes: 1003}, Created: at(3), Used: at(3)},
		{Model: "bob/model", State: prefix.State{Owner: "ann", Conversation: "resp_1", Tokens: 110, Bytes: 1002}, Created: at(2), Used: at(2)},
		{Model: "ann/model", State: prefix.State{Owner: "bob", Conversation: "resp_2", Tokens: 110, Bytes: 1001}, Created: at(1), Used: at(1)},
	}
	got := w.List()
	for i := range got {
		got[i].Prompt, got[i].PromptTokens = nil, 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	w := full(t)
	h := w.shelf()
	found, _ := h.Find(Query{Prompt: chain("a")})
	w.must(w.lay(h, chain("a")), w.lay(h, chain("a")))
	h.Judge(found.ID, 100, 99)
	h.Judge(found.ID, 100, 49)
	h.Judge(found.ID, 0, 7) // nothing was expected
	found, _ = h.Find(Query{Prompt: chain("b")})
	h.Drop(found.ID, errors.New("refused"))
	want := []Counts{
		{Model: "ann/model", Saves: 2, Restores: 2, Misses: 1, Refused: 1, Spared: 148, Written: 2001, Read: 2000, States: 1, Held: 1000},
		{Model: "bob/model", Saves: 2, Written: 2005, States: 2, Held: 2005},
	}
	if diff := cmp.Diff(want, w.Counts()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.open()
	want = []Counts{{Model: "ann/model", States: 1, Held: 1000}, {Model: "bob/model", States: 2, Held: 2005}}
	if diff := cmp.Diff(want, w.Counts()); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
}

// TestOff_ShelvesThatAreOpen may be of use again when the store is switched on again.
func TestOff_ShelvesThatAreOpen(t *testing.T) {
	t.Parallel()
	w := full(t)
	h := w.shelf()
	w.Configure(Settings{Off: true})
	if _, ok := h.Find(Query{Prompt: chain("a")}); ok {
		t.Error("a state is found")
	}
	if _, err := w.Shelf(w.print()); !errors.Is(err, ErrOff) {
		t.Errorf("a new shelf: %v", err)
	}
	w.engineWrites(h, "saved", 1000)
	if err := h.Put("saved", state(chain("a"))); !errors.Is(err, ErrOff) {
		t.Errorf("Put: %v", err)
	}
	w.hasOnly(0)
	w.Configure(Settings{})
	w.put(h, state(chain("a")))
	w.hasOnly(1)
}

// TestStore_PrunesEveryHour without being asked to.
func TestStore_PrunesEveryHour(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(filepath.Join(dir, "warm"), nil, WithDisk(func() (int64, int64, error) { return 100 * gib, 100 * gib, nil }))
		if err != nil {
			t.Fatal(err)
		}
		s.Configure(Settings{Size: 1 << 20, MaxAge: 90 * time.Minute})
		h, err := s.Shelf(Print{Model: "ann/model"})
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(os.WriteFile(filepath.Join(h.Folder(), "x"), make([]byte, 1000), 0o600), h.Put("x", state(chain("a"))))
		if err != nil {
			t.Fatal(err)
		}
		for hours, want := range []int{1, 1, 0} {
			synctest.Wait()
			if got := len(s.List()); got != want {
				t.Errorf("%d states after %d hours", got, hours)
			}
			time.Sleep(time.Hour + time.Second)
		}
		h.Close()
		s.Close()
		s.Close()
	})
}
