package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

const (
	// maxDeaths is how many engines may end at a restore before a request does without.
	maxDeaths = 2
)

// errLost means that the engine ended, or was stopped, before the lease could be used.
var errLost = errors.New("the engine ended while the state of a prompt was restored")

// warm restores states into the slots of a lease, as far as that pays. The error is that of the context, or errLost.
func (l *Lease) warm(ctx context.Context, d *schedule.Demand) error {
	keeper := l.keeper()
	if keeper == nil || len(d.Prompt) == 0 {
		return nil
	}
	query := warm.Query{Owner: d.Owner, Private: l.Instance.Spec.Private, Prompt: d.Prompt, Context: l.Instance.Spec.ContextLength}
	for i := range l.pins {
		pin := &l.pins[i]
		keeper.Settling.Wait(ctx, keeper.Key, func(c *prefix.State) bool {
			mayUse := !query.Private || c.Owner == query.Owner
			return mayUse && keeper.Weigh(&pin.Loan, c.Common(query.Prompt), c.Bytes) > 0
		})
		found, ok := keeper.Shelf.Find(query)
		patience := keeper.Weigh(&pin.Loan, found.Common, found.Bytes)
		if !ok || patience == 0 {
			if pin.IsMoved {
				pin.saved.Store(int64(keeper.SaveNow(ctx, pin.Slot, *pin.Unsaved)))
			}
			continue
		}
		if err := l.restore(ctx, keeper, pin, found, patience); err != nil {
			return err
		}
	}
	return nil
}

// restore restores a state into a slot. What the slot would lose is saved before, once it is sure that the file is good. A state that the
// engine refuses, or on which it ends, is deleted. One that can't be read within patience isn't restored.
func (l *Lease) restore(ctx context.Context, k *process.Slots, slot *pin, found warm.Found, patience time.Duration) error {
	begun := time.Now()
	defer func(begun time.Time) { l.RestoreTime += time.Since(begun) }(begun)
	reading, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	file, err := k.Shelf.Lay(reading, found.ID) // it reads the file, so that the engine needn't wait for the disk
	took := time.Since(begun)
	if err != nil {
		if reading.Err() != nil && ctx.Err() == nil {
			k.Shelf.Restored(found.Bytes, took) // it would have taken even longer
		}
		k.Log.Debug("a state isn't restored", "took", took, "error", err)
		return ctx.Err()
	}
	defer k.Shelf.Lift(file)
	if slot.Unsaved != nil {
		slot.saved.Store(int64(k.SaveNow(ctx, slot.Slot, *slot.Unsaved)))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	begun = time.Now()
	state, err := k.Restore(ctx, l.Post, slot.Slot, file)
	waited := time.Since(begun)
	var refused *process.SlotRefusal
	switch {
	case ctx.Err() != nil:
		slot.sent.Store(true) // it may be restored nevertheless
		return ctx.Err()
	case err == nil && state.Tokens == found.Tokens:
		took += cmp.Or(state.Took, waited) // the engine may have been busy before
		k.Shelf.Restored(found.Bytes, took)
		k.Log.Debug("a state is restored", "slot", slot.Slot, "tokens", state.Tokens, "common", found.Common, "took", took)
		l.supervisor.counts.took(l.Instance.Spec.Model.Key, PhaseRestore, took)
		slot.restored.Store(int64(found.Common))
		slot.judge = func(use schedule.Use) { k.Shelf.Judge(found.ID, min(found.Common, use.Prompt-1), use.Cached) }
		return nil
	case err == nil:
		err = fmt.Errorf("the engine has restored %d tokens of %d", state.Tokens, found.Tokens)
	case !errors.As(err, &refused):
		return l.lostAt(ctx, k, slot, found.ID, err)
	}
	slot.Reuse = false
	slot.emptied.Store(true)
	k.Shelf.Drop(found.ID, err)
	return nil
}

// lostAt handles a restore that wasn't answered. If the engine lives, the request is sent nevertheless: whatever the slot holds now is
// right.
func (l *Lease) lostAt(ctx context.Context, k *process.Slots, slot *pin, id string, err error) error {
	slot.sent.Store(true) // it may be restored nevertheless
	loss := l.Lost(ctx, err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case loss.Kind == process.Unharmed:
		k.Log.Warn("the restore of a state wasn't answered", "error", err)
		return nil
	case loss.Kind != process.Unloaded && loss.Kind != process.ShutDown:
		k.Shelf.Drop(id, err)
	}
	return errLost
}
