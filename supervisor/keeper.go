package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

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
	// slack is by how many tokens a slot may have less than the prompt that it should hold: engines process the last ones again.
	slack = 16
	// maxSlotAnswer bounds the answer to a save or a restore, in bytes.
	maxSlotAnswer = 64 << 10
)

// keeper has the states of a process's slots saved, one after the other. The engine writes a file; when it has, the slot can be used
// again, and the file is put onto the shelf in the background.
type keeper struct {
	saver    Saver
	shelf    *warm.Shelf
	key      string // of the model
	settling *settling
	log      *slog.Logger
	post     func(ctx context.Context, path string, body Payload) (*http.Response, error)

	work sync.WaitGroup // the goroutine that saves, and those that put files onto the shelf
	put  sync.Mutex     // held while a file is put

	mu      sync.Mutex
	queue   []*keep // the first is being saved
	putting map[*keep]struct{}
	closed  bool
	warned  bool
	until   time.Time // nothing is saved before
}

// stateOf returns what is known of a content before the engine has written it.
func stateOf(c schedule.Content) warm.State {
	return warm.State{Owner: c.Owner, Conversation: c.Conversation, Prompt: c.Prompt, PromptTokens: c.PromptTokens, Tokens: c.Tokens}
}

// keep is a state on its way from a slot onto the shelf.
type keep struct {
	slot      int
	state     warm.State
	hurried   bool             // somebody waits
	done      func(tokens int) // told how many are saved (0: none), once the slot can be used again
	ctx       context.Context
	forgotten bool // it mustn't be kept; guarded by the keeper's lock
}

// openKeeper prepares a launch for saving, if that is possible. The keeper has to be closed when the process has exited.
func (p *process) openKeeper(engine Process, l *Launch, b Build) *keeper {
	saver, ok := engine.(Saver)
	if !ok || p.options.Warm == nil || !l.Slotted || !saver.CanSave(l.Spec, b) {
		return nil
	}
	shelf, err := p.options.Warm.Shelf(warm.Print{
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
	return &keeper{
		saver: saver, shelf: shelf, key: l.Model.Key, settling: p.options.settling, log: p.log,
		post: p.do, putting: map[*keep]struct{}{},
	}
}

// close waits until all that the engine has written is kept.
func (k *keeper) close() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.work.Wait()
	k.shelf.Close()
}

// begin has a state saved after those that are waiting. It doesn't block.
func (k *keeper) begin(job *keep) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		go job.done(0)
		return
	}
	k.queue = append(k.queue, job)
	if len(k.queue) == 1 {
		k.work.Go(k.saveAll)
	}
}

// saveAll saves what waits.
func (k *keeper) saveAll() {
	for job := k.first(); job != nil; job = k.next() {
		job.done(k.save(job))
	}
}

func (k *keeper) first() *keep {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.queue[0]
}

// next removes the first in the queue, and returns the one after it, or nil.
func (k *keeper) next() *keep {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queue = k.queue[1:]; len(k.queue) == 0 {
		return nil
	}
	return k.queue[0]
}

// forget keeps the states that match from being kept.
func (k *keeper) forget(ev schedule.Forgot) {
	if k == nil || ev == (schedule.Forgot{}) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	forget := func(job *keep) {
		if (ev.Key == "" || ev.Key == k.key) && (ev.Owner == "" || ev.Owner == job.state.Owner) &&
			(ev.Conversation == "" || ev.Conversation == job.state.Conversation) {
			job.forgotten = true
		}
	}
	for _, job := range k.queue {
		forget(job)
	}
	for job := range k.putting {
		forget(job)
	}
}

func (k *keeper) isForgotten(job *keep) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return job.forgotten
}

// save has the engine write a state, and the file put onto the shelf. It returns how many tokens are saved.
func (k *keeper) save(job *keep) int {
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
		k.log.Debug("a slot doesn't hold the prompt that it should", "slot", job.slot, "tokens", state.Tokens, "prompt", job.state.PromptTokens)
	default:
		k.shelf.Saved(state.Tokens, state.Bytes, cmp.Or(state.Took, took))
		k.log.Debug("the state of a slot is saved", "slot", job.slot, "tokens", state.Tokens, "bytes", state.Bytes, "took", took)
		job.state.Tokens, job.state.Bytes, job.state.PromptTokens = state.Tokens, state.Bytes, min(state.Tokens, job.state.PromptTokens)
		if !k.pays(job) { // which wasn't known before
			k.work.Go(k.shelf.Note)
			break
		}
		end := k.settling.begin(k.key, job.state)
		k.work.Go(func() {
			defer end()
			k.keep(job, file)
		})
		return state.Tokens
	}
	_ = os.Remove(filepath.Join(k.shelf.Folder(), file)) // there may be none, or a part of one
	return 0
}

// admits reports whether a state may be saved now.
func (k *keeper) admits(job *keep) bool {
	k.mu.Lock()
	paused := job.forgotten || time.Now().Before(k.until)
	k.mu.Unlock()
	if paused || job.ctx.Err() != nil {
		return false
	}
	rates := k.shelf.Rates()
	job.state.Bytes = rates.Size(job.state.Tokens)
	if !k.pays(job) {
		return false
	}
	if job.hurried {
		saving, again := rates.Saving(job.state.Tokens), rates.Processing(job.state.Tokens)
		if saving > min(mostDelay, again/delayShare) {
			k.log.Debug("a state isn't saved: somebody would have to wait too long", "slot", job.slot, "tokens", job.state.Tokens,
				"saving", saving, "processing", again)
			return false
		}
	}
	return k.shelf.Admits(job.state.Bytes)
}

// pays reports whether the state of a slot would be restored into an engine that has nothing of it.
func (k *keeper) pays(job *keep) bool {
	rates := k.shelf.Rates()
	balance := rates.Balance(job.state.PromptTokens, job.state.Bytes)
	if !balance.Pays() {
		k.log.Debug("a state isn't kept: to process the prompt again is faster than to restore it", "slot", job.slot,
			"tokens", job.state.Tokens, "bytes", job.state.Bytes, "processing", balance.Process, "restoring", balance.Restore)
	}
	return balance.Pays()
}

// write has the engine write the state of a slot.
func (k *keeper) write(ctx context.Context, slot int, file string) (SlotState, error) {
	path, body := k.saver.Save(slot, file)
	resp, err := k.post(ctx, path, Payload{Pieces: [][]byte{body}})
	if err != nil {
		return SlotState{}, err
	}
	return slotAnswer(resp, k.saver.Saved)
}

// slotAnswer reads the answer to a save or a restore.
func slotAnswer(resp *http.Response, parse func([]byte) (SlotState, error)) (SlotState, error) {
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxSlotAnswer))
	if err != nil {
		return SlotState{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return SlotState{}, &slotRefusal{resp.StatusCode, answer}
	}
	state, err := parse(answer)
	if err != nil {
		return SlotState{}, &slotRefusal{resp.StatusCode, answer}
	}
	return state, nil
}

// slotRefusal is an answer of an engine that hasn't saved or restored a state.
type slotRefusal struct {
	status int
	answer []byte
}

func (r *slotRefusal) Error() string {
	return fmt.Sprintf("the engine answered with status %d: %s", r.status, bytes.TrimSpace(r.answer[:min(len(r.answer), 500)]))
}

// keep puts a file onto the shelf. Files are put one after the other, and none of a state that was forgotten.
func (k *keeper) keep(job *keep, file string) {
	k.mu.Lock()
	k.putting[job] = struct{}{}
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.putting, job)
	}()
	k.put.Lock()
	defer k.put.Unlock()
	if k.isForgotten(job) {
		_ = os.Remove(filepath.Join(k.shelf.Folder(), file))
		return
	}
	err := k.shelf.Put(file, job.state)
	isUnwanted := errors.Is(err, warm.ErrDeleted) || errors.Is(err, warm.ErrOff) // the disk is all right
	if err != nil && !isUnwanted && !k.isForgotten(job) {
		k.failed(err)
	}
}

// failed stops saving for a while. The first time it tells why.
func (k *keeper) failed(err error) {
	k.mu.Lock()
	tell := !k.warned
	k.warned, k.until = true, time.Now().Add(savePause)
	k.mu.Unlock()
	level := slog.LevelDebug
	if tell {
		level = slog.LevelWarn
	}
	k.log.Log(context.Background(), level, "the state of a slot couldn't be saved; the next attempt is made later", "pause", savePause, "error", err)
}

// keep carries out a Save.
func (s *Supervisor) keep(e schedule.Save) {
	p, in := s.running[e.Gen], s.state.Find(e.Gen)
	if p == nil || in == nil {
		return // it has exited
	}
	launched := p.launched.Load()
	if launched == nil || launched.keeper == nil {
		go p.report(schedule.Saved{Gen: e.Gen, Slot: e.Slot})
		return
	}
	launched.keeper.begin(&keep{
		slot: e.Slot, state: stateOf(in.Holds(e.Slot)), hurried: e.Leaving, ctx: p.ctx,
		done: func(tokens int) { p.report(schedule.Saved{Gen: e.Gen, Slot: e.Slot, Tokens: tokens}) },
	})
}

func (s *Supervisor) forget(ev schedule.Forgot) {
	for _, p := range s.running {
		if launched := p.launched.Load(); launched != nil {
			launched.keeper.forget(ev)
		}
	}
}
