package process

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/http1"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

const (
	// saveTimeout is how long a save may take. An engine that takes longer hangs, or its disk does.
	saveTimeout = 30 * time.Second
	// savePause is how long nothing is saved after a save has failed: the disk is full, perhaps, or can't be written.
	savePause = 10 * time.Minute
	// mostDelay and delayShare bound the time by which a save may delay somebody: absolutely, and by its share of the time that
	// processing the prompt again would take.
	mostDelay  = 2 * time.Second
	delayShare = 4
	// restoreGain is how many more tokens of a prompt a saved state must have than the engine has itself.
	restoreGain = 256
	// slack is by how many tokens a slot may have less than the prompt that it should hold: engines process the last ones again.
	slack = 16
	// maxSlotAnswer bounds the answer to a save or a restore, in bytes.
	maxSlotAnswer = 64 << 10
)

// Slots has the states of a process's slots saved, one after the other. The engine writes a file; when it has, the slot can be used
// again, and the file is put onto the shelf in the background.
type Slots struct {
	saver    Saver
	Shelf    *warm.Shelf
	Key      string // of the model
	Settling *settling
	Log      *slog.Logger
	ctx      context.Context // ends with the process
	post     func(ctx context.Context, path string, body http1.Body) (*http.Response, error)

	work sync.WaitGroup // the goroutine that saves, and those that put files onto the shelf
	put  sync.Mutex     // held while a file is put

	mu     sync.Mutex
	queue  []*saveJob // the first is being saved
	closed bool
	warned bool
	until  time.Time // nothing is saved before
}

// saveJob is a state on its way from a slot onto the shelf.
type saveJob struct {
	key     string // of the model
	slot    int
	state   prefix.State
	hurried bool             // somebody waits
	done    func(tokens int) // told how many are saved (0: none), once the slot can be used again
	ctx     context.Context

	// These are guarded by the lock of settling.
	isWritten   bool          // by the engine
	isForgotten bool          // it mustn't be kept
	ended       chan struct{} // closed when it is kept, or won't be
}

// openSlots prepares a launch for saving, if that is possible. Slots have to be closed when the process has exited.
func (p *Process) openSlots(l *Launch, b Build) *Slots {
	saver, ok := p.program.(Saver)
	if !ok || p.host.Warm == nil || !l.Slotted || !saver.CanSave(l.Spec, b) {
		return nil
	}
	shelf, err := p.host.Warm.Shelf(warm.Print{
		Model: l.Model.Key, Files: withShards(l.files()), Engine: l.Engine, Build: b.Version,
		Architecture: l.Model.Architecture, Launch: saver.Print(l.Spec, b),
	})
	if err != nil {
		if !errors.Is(err, warm.ErrOff) {
			p.log.Warn("the states of this model's prompts can't be saved", "error", err)
		}
		return nil
	}
	l.States = shelf.Folder()
	return &Slots{
		saver: saver, Shelf: shelf, Key: l.Model.Key, Settling: &p.host.settling, Log: p.log, ctx: p.ctx,
		post: p.do,
	}
}

// close waits until all that the engine has written is kept.
func (k *Slots) close() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.work.Wait()
	k.Shelf.Close()
}

// begin has a state saved after those that are waiting. It doesn't block.
func (k *Slots) begin(job *saveJob) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		go job.done(0)
		return
	}
	job.key = k.Key
	k.Settling.add(job)
	k.queue = append(k.queue, job)
	if len(k.queue) == 1 {
		k.work.Go(func() {
			for next := job; next != nil; next = k.next() {
				next.done(k.save(next))
			}
		})
	}
}

// next removes the first in the queue, and returns the one after it, or nil.
func (k *Slots) next() *saveJob {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue = k.queue[1:]; len(k.queue) == 0 {
		return nil
	}
	return k.queue[0]
}

// save has the engine write a state, and the file put onto the shelf. It returns how many tokens are saved.
func (k *Slots) save(job *saveJob) (tokens int) {
	defer func() {
		if tokens == 0 {
			k.Settling.end(job)
		}
	}()
	if !k.admits(job) {
		return 0
	}
	ctx, cancel := context.WithTimeout(job.ctx, saveTimeout)
	defer cancel()
	file := rand.Text()
	begun := time.Now()
	state, err := k.write(ctx, job.slot, file)
	took := time.Since(begun)
	switch {
	case err != nil:
		isLate := job.hurried && errors.Is(err, context.DeadlineExceeded) // other requests may keep the engine busy
		if job.ctx.Err() == nil && !isLate {
			k.failed(err)
		}
	case state.Tokens == 0 || state.Bytes == 0: // the engine has emptied the slot
	case state.Tokens < job.state.PromptTokens-slack:
		k.Log.Debug("a slot doesn't hold the prompt that it should", "slot", job.slot, "tokens", state.Tokens,
			"prompt", job.state.PromptTokens)
	default:
		k.Shelf.Saved(state.Tokens, state.Bytes, cmp.Or(state.Took, took))
		k.Log.Debug("the state of a slot is saved", "slot", job.slot, "tokens", state.Tokens, "bytes", state.Bytes, "took", took)
		job.state.Tokens, job.state.Bytes, job.state.PromptTokens = state.Tokens, state.Bytes, min(state.Tokens, job.state.PromptTokens)
		if !k.pays(job) { // which wasn't known before
			k.work.Go(k.Shelf.Note)
			break
		}
		k.Settling.write(job)
		k.work.Go(func() { k.shelve(job, file) })
		return state.Tokens
	}
	_ = os.Remove(filepath.Join(k.Shelf.Folder(), file)) // there may be none, or a part of one
	return 0
}

func (k *Slots) admits(job *saveJob) bool {
	k.mu.Lock()
	isPaused := time.Now().Before(k.until)
	k.mu.Unlock()
	if isPaused || job.ctx.Err() != nil || k.Settling.isForgotten(job) {
		return false
	}
	rates := k.Shelf.Rates()
	job.state.Bytes = rates.Size(job.state.Tokens)
	if !k.pays(job) {
		return false
	}
	if job.hurried {
		saving, again := rates.Saving(job.state.Tokens), rates.Processing(job.state.Tokens)
		if saving > min(mostDelay, again/delayShare) {
			k.Log.Debug("a state isn't saved: somebody would have to wait too long", "slot", job.slot, "tokens", job.state.Tokens,
				"saving", saving, "processing", again)
			return false
		}
	}
	return k.Shelf.Admits(job.state.Bytes)
}

// pays reports whether the state of a slot would be restored into an engine that has nothing of it.
func (k *Slots) pays(job *saveJob) bool {
	rates := k.Shelf.Rates()
	balance := rates.Balance(job.state.PromptTokens, job.state.Bytes)
	if !balance.Pays() {
		k.Log.Debug("a state isn't kept: to process the prompt again is faster than to restore it", "slot", job.slot,
			"tokens", job.state.Tokens, "bytes", job.state.Bytes, "processing", balance.Process, "restoring", balance.Restore)
	}
	return balance.Pays()
}

func (k *Slots) write(ctx context.Context, slot int, file string) (SlotState, error) {
	path, body := k.saver.Save(slot, file)
	resp, err := k.post(ctx, path, http1.Body{Pieces: [][]byte{body}})
	if err != nil {
		return SlotState{}, err
	}
	return slotAnswer(resp, k.saver.Saved)
}

// Restore has the engine read the state of a slot from a file. The request is sent with post, as one of the lease, so that no other is
// suspected if the engine ends. It has no time limit, since a busy engine may take long to come to it: the pulse finds out whether the
// engine hangs.
func (k *Slots) Restore(
	ctx context.Context, post func(ctx context.Context, path string, body []byte) (*http.Response, error), slot int, file string,
) (SlotState, error) {
	path, body := k.saver.Restore(slot, file)
	resp, err := post(ctx, path, body)
	if err != nil {
		return SlotState{}, err
	}
	return slotAnswer(resp, k.saver.Restored)
}

func slotAnswer(resp *http.Response, parse func([]byte) (SlotState, error)) (SlotState, error) {
	defer resp.Body.Close()
	status, answer, err := readAnswer(resp, maxSlotAnswer)
	if err != nil {
		return SlotState{}, err
	}
	state, err := parse(answer)
	if err != nil || status != http.StatusOK {
		return SlotState{}, &SlotRefusal{status, answer}
	}
	return state, nil
}

// SlotRefusal is an answer of an engine that hasn't saved or restored a state.
type SlotRefusal struct {
	status int
	answer []byte
}

func (r *SlotRefusal) Error() string {
	return fmt.Sprintf("the engine answered with status %d: %s", r.status, bytes.TrimSpace(r.answer[:min(len(r.answer), 500)]))
}

// shelve puts a file onto the shelf. Files are put one after the other, and none of a state that was forgotten.
func (k *Slots) shelve(job *saveJob, file string) {
	defer k.Settling.end(job)
	k.put.Lock()
	defer k.put.Unlock()
	if k.Settling.isForgotten(job) {
		_ = os.Remove(filepath.Join(k.Shelf.Folder(), file))
		return
	}
	err := k.Shelf.Put(file, job.state)
	isUnwanted := errors.Is(err, warm.ErrDeleted) || errors.Is(err, warm.ErrOff) // the disk is all right
	if err != nil && !isUnwanted && !k.Settling.isForgotten(job) {
		k.failed(err)
	}
}

// failed stops saving for a while. The first time it tells why.
func (k *Slots) failed(err error) {
	k.mu.Lock()
	tell := !k.warned
	k.warned, k.until = true, time.Now().Add(savePause)
	k.mu.Unlock()
	level := slog.LevelDebug
	if tell {
		level = slog.LevelWarn
	}
	k.Log.Log(context.Background(), level, "the state of a slot couldn't be saved; the next attempt is made later",
		"pause", savePause, "error", err)
}

// SaveNow saves what a leased slot holds, and returns how many tokens are saved when the engine has written them; 0: none are.
func (k *Slots) SaveNow(ctx context.Context, slot int, c prefix.State) (tokens int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(k.ctx, cancel)()
	done := make(chan int, 1)
	k.begin(&saveJob{slot: slot, state: c, hurried: true, ctx: ctx, done: func(tokens int) { done <- tokens }})
	select {
	case tokens = <-done:
	case <-ctx.Done(): // others may be before it
	}
	return tokens
}

// Save has what a slot holds saved, and reports that it is.
func (p *Process) Save(slot int, c prefix.State, isLeaving bool) {
	done := func(tokens int) { p.report(schedule.Saved{Gen: p.gen, Slot: slot, Tokens: tokens}) }
	if l := p.launched.Load(); l == nil || l.Slots == nil {
		go done(0)
	} else {
		l.Slots.begin(&saveJob{slot: slot, state: c, hurried: isLeaving, ctx: p.ctx, done: done})
	}
}

// Weigh returns how long to restore a state may take, since the engine would take as long to process what the state has more of a prompt
// than the engine has itself; 0: that is too little, or to restore it takes longer.
func (k *Slots) Weigh(slot *schedule.Loan, common int, bytes int64) time.Duration {
	gain := common - max(slot.Common, slot.Cached)
	if gain < restoreGain {
		return 0
	}
	rates := k.Shelf.Rates()
	balance := rates.Balance(gain, bytes)
	if !balance.Pays() {
		k.Log.Debug("a state isn't restored: to process the prompt is faster", "slot", slot.Slot, "tokens", gain, "bytes", bytes,
			"processing", balance.Process, "restoring", balance.Restore)
		return 0
	}
	return balance.Process
}
