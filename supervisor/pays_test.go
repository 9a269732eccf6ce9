package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/warm"
)

// disk is an engine whose saves and restores take as long as it says.
type disk struct {
	process.Program
	process.Saver
	save, restore *atomic.Int64
}

func (d disk) Saved(answer []byte) (process.SlotState, error) {
	state, err := d.Saver.Saved(answer)
	state.Took = time.Duration(d.save.Load())
	return state, err
}

func (d disk) Restored(answer []byte) (process.SlotState, error) {
	state, err := d.Saver.Restored(answer)
	state.Took = time.Duration(d.restore.Load())
	return state, err
}

// newFast starts a server whose engine processes a token of a prompt in a millisecond, on a disk for which saves and restores take some
// time.
func newFast(t *testing.T, saveAfter, save, restore time.Duration) (h *home, d disk) {
	t.Helper()
	h = newHome(t, nil, 1, saveAfter)
	h.close()
	d = disk{save: new(atomic.Int64), restore: new(atomic.Int64)}
	d.save.Store(int64(save))
	d.restore.Store(int64(restore))
	h.wrap = func(p process.Program) process.Program { return disk{p, p.(process.Saver), d.save, d.restore} }
	h.token = time.Millisecond
	h.open()
	return h, d
}

// did fails unless engines were asked for these actions on slots so far.
func (h *home) did(want ...string) {
	h.t.Helper()
	if got := h.acted(); !slices.Equal(got, want) {
		h.t.Errorf("actions %v, want %v", got, want)
	}
}

const (
	quick = time.Millisecond
	slow  = time.Minute
)

// Where a prompt is processed faster than the disk writes, one state is written, to find that out. It isn't kept, and there is no other:
// neither before the engine ends, nor when it is idle, nor before a request takes the slot, nor after a restart.
func TestPays_NothingIsWrittenToASlowDisk(t *testing.T) {
	t.Parallel()
	h, _ := newFast(t, later, slow, quick)
	h.say("ann", "one")
	h.unload()
	h.empty()
	h.kept(0)
	testkit.Eventually(t, "it is remembered, also if the server is killed", func() bool {
		_, err := os.Stat(filepath.Join(h.dir, "rates.json"))
		return err == nil
	})
	for range 2 {
		h.say("ann", "one")
		h.say("ann", "one", "answer", "two")
		h.say("ann", "something", "else") // it moves a conversation that went on
		h.unload()
		h.close()
		h.saves = soon
		h.open()
		h.say("ann", "three")
		testkit.Eventually(t, "the slot isn't saved", func() bool {
			return h.tried() && h.log.count("to process the prompt again is faster than to restore it") > 0
		})
	}
	h.did("save")
	h.kept(0)
	if rates := h.store.Rates()["m"]; rates.Bytes == 0 || rates.Prompt != time.Millisecond {
		t.Errorf("%+v", rates)
	}
}

// tried reports whether the only slot was to be saved.
func (h *home) tried() (is bool) {
	h.look(func() {
		for _, in := range h.state.Instances {
			is = !in.IsSaving()
		}
	})
	return is
}

// Where a disk turns out to read slower than a prompt is processed, what was saved isn't read a second time, and nothing more is written.
func TestPays_NothingIsReadFromASlowDisk(t *testing.T) {
	t.Parallel()
	h, _ := newFast(t, later, quick, slow)
	h.say("ann", "one")
	h.unload()
	h.kept(1)
	if got := h.say("ann", "one", "answer", "two"); got.cached == 0 {
		t.Errorf("%+v", got)
	}
	h.unload()
	for range 2 {
		if got := h.say("ann", "one", "answer", "two", "answer", "three"); got.cached > 0 {
			t.Errorf("%+v", got)
		}
		h.close()
		h.open()
	}
	h.did("save", "restore")
	h.kept(1)
	if h.log.count("to process the prompt is faster") == 0 {
		t.Error("the log doesn't say why it isn't restored")
	}
}

// Where a save was fast, a state is restored, however fast prompts are processed; and it is by the time that restores take that the next
// ones are saved and restored, also after a restart.
func TestPays_AFastDisk(t *testing.T) {
	t.Parallel()
	h, d := newFast(t, later, quick, quick)
	first := h.say("ann", "one")
	h.unload()
	h.kept(1)
	d.save.Store(int64(150 * time.Millisecond)) // less than a quarter of the prompt's processing
	if got := h.say("ann", "one", "answer", "two"); got.cached < first.prompt-10 {
		t.Errorf("%+v", got)
	}
	h.unload()
	h.close()
	h.open()
	if got := h.say("ann", "one", "answer", "two", "answer", "three"); got.cached <= first.prompt {
		t.Errorf("after a restart: %+v", got)
	}
	h.did("save", "restore", "save", "restore")
}

// A restore gets no more time than it would spare, and what it couldn't do in that counts.
func TestPays_AReadThatTakesTooLong(t *testing.T) {
	t.Parallel()
	h, _ := withSaved(t, nil, 1)
	lease := acquire(t, h.Supervisor, h.saidBy("bob", "another"))
	defer lease.Release()
	k := lease.keeper()
	found, ok := k.Shelf.Find(warm.Query{Prompt: h.saidBy("ann", "system", "one").Prompt})
	if !ok {
		t.Fatal("nothing is found")
	}
	if err := lease.restore(t.Context(), k, &lease.pins[0], found, 1); err != nil {
		t.Error(err)
	}
	h.did("save")
	h.kept(1)
	if k.Shelf.Rates().Restore.Rate == 0 {
		t.Error("nothing is learnt")
	}
}
