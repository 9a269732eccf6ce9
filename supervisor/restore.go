package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

const (
	// restoreGain is how many more tokens of a prompt a saved state must have than the engine has itself.
	restoreGain = 256
	// maxDeaths is how many engines may end at a restore before a request does without.
	maxDeaths = 2
)

// errLost means that the engine ended, or was stopped, before the lease could be used.
var errLost = errors.New("the engine ended while the state of a prompt was restored")

// warm restores states into the slots of a lease, as far as that pays. The error is that of the context, or errLost.
func (l *Lease) warm(ctx context.Context, d *Demand) error {
	keeper := l.keeper()
	if keeper == nil || len(d.Prompt) == 0 {
		return nil
	}
	query := warm.Query{Owner: d.Owner, Private: l.Instance.Spec.Private, Prompt: d.Prompt, Context: l.Instance.Spec.ContextLength}
	for i := range l.pins {
		pin := &l.pins[i]
		keeper.settling.wait(ctx, keeper.key, func(c *schedule.Content, bytes int64) bool {
			mayUse := !query.Private || c.Owner == query.Owner
			return mayUse && keeper.weigh(&pin.Loan, c.Common(query.Prompt), bytes) > 0
		})
		found, ok := keeper.shelf.Find(query)
		patience := keeper.weigh(&pin.Loan, found.Common, found.Bytes)
		if !ok || patience == 0 {
			if pin.IsMoved {
				keeper.saveNow(ctx, l.process.ctx, pin)
			}
			continue
		}
		if err := l.restore(ctx, keeper, pin, found, patience); err != nil {
			return err
		}
	}
	return nil
}

// weigh returns how long to restore a state may take, since the engine would take as long to process what the state has more of a prompt
// than the engine has itself; 0: that is too little, or to restore it takes longer.
func (k *keeper) weigh(slot *schedule.Loan, common int, bytes int64) time.Duration {
	gain := common - max(slot.Common, slot.Cached)
	if gain < restoreGain {
		return 0
	}
	rates := k.shelf.Rates()
	balance := rates.Balance(gain, bytes)
	if !balance.Pays() {
		k.log.Debug("a state isn't restored: to process the prompt is faster", "slot", slot.Slot, "tokens", gain, "bytes", bytes,
			"processing", balance.Process, "restoring", balance.Restore)
		return 0
	}
	return balance.Process
}

// restore restores a state into a slot. What the slot would lose is saved before, once it is sure that the file is good. A state that the
// engine refuses, or on which it ends, is deleted. One that can't be read within patience isn't restored.
func (l *Lease) restore(ctx context.Context, k *keeper, slot *pin, found warm.Found, patience time.Duration) error {
	begun := time.Now()
	defer func(begun time.Time) { l.RestoreTime += time.Since(begun) }(begun)
	reading, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	file, err := k.shelf.Lay(reading, found.ID) // it reads the file, so that the engine needn't wait for the disk
	took := time.Since(begun)
	if err != nil {
		if reading.Err() != nil && ctx.Err() == nil {
			k.shelf.Restored(found.Bytes, took) // it would have taken even longer
		}
		k.log.Debug("a state isn't restored", "took", took, "error", err)
		return ctx.Err()
	}
	defer k.shelf.Lift(file)
	if slot.Unsaved != nil {
		k.saveNow(ctx, l.process.ctx, slot)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	begun = time.Now()
	state, err := l.askToRestore(ctx, k.saver, slot.Slot, file)
	waited := time.Since(begun)
	var refused *slotRefusal
	switch {
	case ctx.Err() != nil:
		slot.sent.Store(true) // it may be restored nevertheless
		return ctx.Err()
	case err == nil && state.Tokens == found.Tokens:
		took += cmp.Or(state.Took, waited) // the engine may have been busy before
		k.shelf.Restored(found.Bytes, took)
		k.log.Debug("a state is restored", "slot", slot.Slot, "tokens", state.Tokens, "common", found.Common, "took", took)
		l.supervisor.counts.took(l.Instance.Spec.Model.Key, PhaseRestore, took)
		slot.restored.Store(int64(found.Common))
		slot.judge = func(use schedule.Use) { k.shelf.Judge(found.ID, min(found.Common, use.Prompt-1), use.Cached) }
		return nil
	case err == nil:
		err = fmt.Errorf("the engine has restored %d tokens of %d", state.Tokens, found.Tokens)
	case !errors.As(err, &refused):
		return l.lostAt(ctx, k, slot, found.ID, err)
	}
	slot.Reuse = false
	slot.emptied.Store(true)
	k.shelf.Drop(found.ID, err)
	return nil
}

// askToRestore sends the request as one of the lease, so that no other is suspected if the engine ends. It has no time limit, since a busy
// engine may take long to come to it: the pulse finds out whether the engine hangs.
func (l *Lease) askToRestore(ctx context.Context, saver Saver, slot int, file string) (SlotState, error) {
	path, body := saver.Restore(slot, file)
	resp, err := l.Post(ctx, path, body)
	if err != nil {
		return SlotState{}, err
	}
	return slotAnswer(resp, saver.Restored)
}

// lostAt handles a restore that wasn't answered. If the engine lives, the request is sent nevertheless: whatever the slot holds now is
// right.
func (l *Lease) lostAt(ctx context.Context, k *keeper, slot *pin, id string, err error) error {
	slot.sent.Store(true) // it may be restored nevertheless
	loss := l.Lost(ctx, err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case loss.Kind == Unharmed:
		k.log.Warn("the restore of a state wasn't answered", "error", err)
		return nil
	case loss.Kind != Unloaded && loss.Kind != ShutDown:
		k.shelf.Drop(id, err)
	}
	return errLost
}

// saveNow saves the state of a leased slot, and waits until the engine has written it.
func (k *keeper) saveNow(ctx, process context.Context, slot *pin) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(process, cancel)()
	done := make(chan struct{})
	k.begin(&keep{slot: slot.Slot, state: stateOf(*slot.Unsaved), hurried: true, ctx: ctx, done: func(tokens int) {
		slot.saved.Store(int64(tokens))
		close(done)
	}})
	select {
	case <-done:
	case <-ctx.Done(): // others may be before it
	}
}
