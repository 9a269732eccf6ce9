package warm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// TestPut_WhatIsNotKept: whatever is wrong, the file is deleted, and the states that there are stay.
func TestPut_WhatIsNotKept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*prefix.State)
		spoil  func(w *world, path string) error
	}{
		"no prompt":             {change: func(st *prefix.State) { st.Prompt = nil }},
		"no tokens":             {change: func(st *prefix.State) { st.Tokens = 0 }},
		"no bytes":              {change: func(st *prefix.State) { st.Bytes = 0 }},
		"negative bytes":        {change: func(st *prefix.State) { st.Bytes = -1000 }},
		"shorter than reported": {change: func(st *prefix.State) { st.Bytes = 1001 }},
		"longer than reported":  {change: func(st *prefix.State) { st.Bytes = 999 }},
		"larger than all": {func(st *prefix.State) { st.Bytes = 1 << 40 }, func(_ *world, path string) error {
			return os.Truncate(path, 1<<40) // a file with a hole
		}},
		"a chain that falls": {change: func(st *prefix.State) { st.Prompt = prefix.Chain{{Weight: 2}, {Sum: prefix.Sum{1}, Weight: 1}} }},
		"a chain that is too long": {change: func(st *prefix.State) {
			st.Prompt = make(prefix.Chain, recordBytes/16)
		}},
		"no file": {spoil: func(_ *world, path string) error { return os.Remove(path) }},
		"a folder": {spoil: func(_ *world, path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		}},
		"a link to a file of the home": {spoil: func(w *world, path string) error {
			return errors.Join(os.Remove(path), os.Symlink(filepath.Join(w.dir, keyFile), path))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.shelf()
			w.put(h, state(chain("a")))
			w.engineWrites(h, "saved", 1000)
			if tt.spoil != nil {
				w.must(tt.spoil(w, filepath.Join(h.Folder(), "saved")))
			}
			st := state(chain("a", "b"))
			if tt.change != nil {
				tt.change(&st)
			}
			if err := h.Put("saved", st); err == nil {
				t.Error("it is kept")
			}
			w.hasOnly(1)
			w.must(w.lay(h, chain("a")))
			if c := w.Counts()[0]; c.Written > 20*gib {
				t.Errorf("%d bytes are said to be written", c.Written)
			}
			if _, err := os.Stat(filepath.Join(w.dir, keyFile)); err != nil {
				t.Error(err)
			}
			w.open()
			w.hasOnly(1)
		})
	}
}

// TestPut_FilesAreThisUsersAlone: engines write with a umask, but this needn't be true of every engine.
func TestPut_FilesAreThisUsersAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.shelf(), state(chain("a")))
	w.must(filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		w.must(err)
		info, err := d.Info()
		w.must(err)
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return nil
	}))
}

// TestPut_ACrashAmidIt stops between the steps of Put, and opens the store again: there is a whole state or none, and no files are left.
func TestPut_ACrashAmidIt(t *testing.T) {
	t.Parallel()
	all := len((&put{}).steps())
	for n := range all + 1 {
		t.Run(fmt.Sprintf("after %d steps", n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.shelf()
			w.put(h, state(chain("a")))
			w.engineWrites(h, "saved", 1000)
			p, err := h.begin(filepath.Join(h.Folder(), "saved"), state(chain("a", "b", "c")))
			w.must(err)
			for _, step := range p.steps()[:n] {
				w.must(step())
			}
			w.open()
			p.end()
			described := n >= 3 // settled, moved, described
			if described {
				w.hasOnly(2)
			} else {
				w.hasOnly(1)
			}
			h = w.shelf()
			if got, want := w.finds(h, chain("a", "b", "c")) == 300, described; got != want {
				t.Errorf("the new state is found: %v, want %v", got, want)
			}
			w.must(w.lay(h, chain("a", "b", "c")), w.lay(h, chain("a")))
		})
	}
}

// TestPut_Replaces: states that a longer one makes useless are deleted, but not beginnings that others may share.
func TestPut_Replaces(t *testing.T) {
	t.Parallel()
	bobs := func(st prefix.State) prefix.State { st.Owner = "bob"; return st }
	for name, tt := range map[string]struct {
		before, put prefix.State
		want        int
	}{
		"the same prompt":             {state(chain("a", "b")), state(chain("a", "b")), 1},
		"continued":                   {state(chain("a", "b")), state(chain("a", "b", "c")), 1},
		"a half":                      {state(chain("a", "b")), state(chain("a", "b", "c", "d")), 1},
		"less than a half":            {state(chain("a", "b")), state(chain("a", "b", "c", "d", "e")), 2},
		"another conversation":        {state(chain("a", "b")), state(chain("a", "c", "d")), 2},
		"a beginning after the whole": {state(chain("a", "b", "c")), state(chain("a", "b")), 2},
		"of another owner":            {bobs(state(chain("a", "b"))), state(chain("a", "b", "c")), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.shelf()
			w.put(h, tt.before)
			w.put(h, tt.put)
			w.hasOnly(tt.want)
			w.open()
			w.hasOnly(tt.want)
		})
	}
}

// TestPut_TokensOfThePrompt: a count that makes no sense isn't more than the tokens that there are.
func TestPut_TokensOfThePrompt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	for _, n := range []int{0, -5, 500} {
		st := state(chain("a"))
		st.PromptTokens = n
		w.put(h, st)
		if got := w.finds(h, chain("a")); got != st.Tokens {
			t.Errorf("%d tokens of the prompt became %d", n, got)
		}
	}
}

// TestPut_TheDiskFails: nothing more is written for a while.
func TestPut_TheDiskFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	obstacle := filepath.Join(w.dir, h.group.name) // a file where the folder should be
	w.must(os.WriteFile(obstacle, nil, 0o600))
	w.engineWrites(h, "saved", 1000)
	if err := h.Put("saved", state(chain("a"))); err == nil {
		t.Error("the state is kept")
	}
	if h.Admits(1000) {
		t.Error("another may be written at once")
	}
	w.must(os.Remove(obstacle))
	w.hasOnly(0)
	w.wait(diskPause)
	if !h.Admits(1000) {
		t.Error("no other may be written later")
	}
	w.put(h, state(chain("a")))
	w.hasOnly(1)
}

// TestPut_ADeletionMeanwhile: what is deleted while it is saved doesn't reappear, wherever Put is, and not even if the engine was
// still writing.
func TestPut_ADeletionMeanwhile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		remove   func(w *world)
		early    bool // it holds before Put begins, too
		original bool // what was there before is deleted, too
	}{
		"the conversation":     {func(w *world) { w.DeleteConversation("resp_1") }, true, true},
		"another conversation": {func(w *world) { w.DeleteConversation("resp_2") }, false, false},
		"no conversation":      {func(w *world) { w.DeleteConversation("") }, false, false},
		"the owner":            {func(w *world) { w.DeleteOwner("ann") }, true, true},
		"another owner":        {func(w *world) { w.DeleteOwner("bob") }, false, false},
		"no owner":             {func(w *world) { w.DeleteOwner("") }, false, false},
		"the model":            {func(w *world) { w.DeleteModel("ann/model") }, true, true},
		"another model":        {func(w *world) { w.DeleteModel("ann/model-2") }, false, false},
		"everything":           {func(w *world) { w.Clear("") }, false, true},
		"switched off":         {func(w *world) { w.Configure(Settings{Off: true}) }, true, true},
	} {
		for at := range len((&put{}).steps()) + 1 {
			t.Run(fmt.Sprintf("%s, at %d", name, at), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				h := w.shelf()
				st := state(chain("a"))
				st.Conversation = "resp_1"
				w.put(h, st)
				w.engineWrites(h, "saved", 1000)
				st = state(chain("a", "b", "c"))
				st.Conversation = "resp_1"
				deleted := make(chan struct{})
				if at == 0 {
					tt.remove(w)
					close(deleted)
				}
				kept := w.putWith(h, st, func(p *put, done int) {
					if at != done+1 {
						return
					}
					go func() { tt.remove(w); close(deleted) }()
					for !isClosed(deleted) && !w.isDropped(p) { // some wait for the end of Put
						runtime.Gosched()
					}
				})
				<-deleted
				want := 2
				switch {
				case tt.original && (at > 0 || tt.early):
					want = 0
				case tt.original:
					want = 1
				}
				if kept != (want > 0) && at < 5 {
					t.Errorf("kept: %v", kept)
				}
				w.hasOnly(want)
				w.open()
				w.hasOnly(want)
			})
		}
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (w *world) isDropped(p *put) bool {
	w.Store.mu.Lock()
	defer w.Store.mu.Unlock()
	return p.dropped
}

// putWith puts the file named saved, and calls between before each step with the number of those that are done. It reports whether
// Put was successful.
func (w *world) putWith(h *Shelf, st prefix.State, between func(p *put, done int)) bool {
	w.t.Helper()
	from := filepath.Join(h.Folder(), "saved")
	p, err := h.begin(from, st)
	if err != nil {
		w.remove(from)
		return false
	}
	defer p.end()
	for n, step := range p.steps() {
		between(p, n)
		if err := step(); err != nil {
			p.discard()
			return false
		}
	}
	return true
}

// TestPut_ADeletedConversationMayComeBack: a branch of it may go on.
func TestPut_ADeletedConversationMayComeBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	st := state(chain("a"))
	st.Conversation = "resp_1"
	w.DeleteConversation("resp_1")
	w.wait(goneFor - time.Second)
	w.engineWrites(h, "saved", 1000)
	if err := h.Put("saved", st); !errors.Is(err, ErrDeleted) {
		t.Errorf("soon after: %v", err)
	}
	w.wait(time.Second)
	w.put(h, st)
	w.DeleteOwner("ann")
	w.wait(goneFor)
	w.put(h, st)
	for i := range 5000 { // and what is remembered of others is bounded
		w.wait(time.Second)
		w.DeleteConversation(fmt.Sprint("resp_", i+2))
		w.DeleteOwner(fmt.Sprint("owner-", i))
	}
	if c, o := len(w.gone.conversations), len(w.gone.owners); c > 2000 || o > 2000 {
		t.Errorf("%d conversations and %d owners are remembered", c, o)
	}
}

// TestDelete_WaitsForWhatIsDescribed: when a deletion has returned, not even a crash brings the state back.
func TestDelete_WaitsForWhatIsDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.engineWrites(h, "saved", 1000)
	deleted := make(chan struct{})
	w.putWith(h, state(chain("a")), func(p *put, done int) {
		if done != 3 {
			return
		}
		go func() {
			w.Clear("")
			if _, err := os.Stat(w.Store.path(h.group, p.id, recordSuffix)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the description after the deletion: %v", err)
			}
			close(deleted)
		}()
		for !w.isDropped(p) {
			runtime.Gosched()
		}
	})
	<-deleted
	w.hasOnly(0)
}

// TestDelete_WhatIsNotDescribedNeverIs, so the deletion needn't wait.
func TestDelete_WhatIsNotDescribedNeverIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.engineWrites(h, "saved", 1000)
	p, err := h.begin(filepath.Join(h.Folder(), "saved"), state(chain("a")))
	w.must(err)
	w.must(p.settle(), p.move())
	w.Clear("")
	if err := p.describe(); !errors.Is(err, ErrDeleted) {
		t.Errorf("describing it: %v", err)
	}
	p.discard()
	p.end()
	w.hasOnly(0)
}

// TestPut_AfterClose: a shelf that is being closed waits for what is being put.
func TestPut_AfterClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.engineWrites(h, "saved", 1000)
	closed := make(chan struct{})
	kept := w.putWith(h, state(chain("a")), func(_ *put, done int) {
		if done == 1 {
			go func() { h.Close(); close(closed) }()
		}
	})
	<-closed
	if !kept {
		t.Error("the state is lost")
	}
	w.hasOnly(1)
}
