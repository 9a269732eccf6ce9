package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/http1"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

// Lease is the right to send one request to an instance.
type Lease struct {
	Instance Info          // when the lease was granted
	LoadTime time.Duration // of the model, if the request waited for its load; else 0
	// RestoreTime is how long the request waited while states were restored, whether or not that worked.
	RestoreTime time.Duration

	supervisor *Supervisor
	upstream   upstream
	process    *process.Process // nil: the lease is of a remote's instance
	grant      schedule.Grant
	answered   atomic.Bool
	release    sync.Once

	pins   []pin           // the slots, if the instance isolates owners
	pinned atomic.Int32    // the number of pinned bodies
	only   [1]pin          // what pins is where there is one slot
	used   [1]schedule.Use // what uses begins with
}

// upstream is what a lease sends its requests to: a process, or a remote. A lease is known to it by a number.
type upstream interface {
	// Post sends a JSON body, and returns the answer when its header has come.
	Post(ctx context.Context, lease uint64, path string, body http1.Body) (*http.Response, error)
	// Lost is Lease.Lost.
	Lost(ctx context.Context, lease uint64, err error) process.Loss
	// Forget says that nothing more is sent on a lease.
	Forget(lease uint64)
}

// Post sends a JSON body to the engine. The body of the answer breaks off when the engine is stopped or ctx ends.
func (l *Lease) Post(ctx context.Context, path string, body []byte) (*http.Response, error) {
	return l.PostPieces(ctx, path, Payload{Pieces: [][]byte{body}})
}

// PostPieces is Post of a body in several pieces.
func (l *Lease) PostPieces(ctx context.Context, path string, body Payload) (*http.Response, error) {
	resp, err := l.upstream.Post(ctx, l.grant.Waiter, path, body.Body())
	if err == nil && body.pin != nil && resp.StatusCode == http.StatusOK {
		body.pin.used.Store(true) // the engine sends nothing before it has begun with the prompt
	}
	return resp, err
}

// Lost returns what happened to the engine after a request has failed with err. If the process has exited, the supervisor
// knows by then, and the next Acquire returns another instance. A live engine that refuses connections is stopped.
func (l *Lease) Lost(ctx context.Context, err error) process.Loss {
	return l.upstream.Lost(ctx, l.grant.Waiter, err)
}

// Answered records that the engine has answered a request completely. Release then clears the model's failures.
func (l *Lease) Answered() { l.answered.Store(true) }

// Release returns the slots. Only the first call counts.
func (l *Lease) Release() {
	l.release.Do(func() {
		l.upstream.Forget(l.grant.Waiter)
		tokenBytes := l.judge()
		l.supervisor.Handle(schedule.Returned{
			Gen: l.grant.Gen, Slots: l.grant.Slots,
			Answered: l.answered.Load(), Key: l.Instance.Spec.Model.Key,
			Waiter: l.grant.Waiter, Used: l.uses(), TokenBytes: tokenBytes,
		})
	})
}

// judge tells what became of restored states, and how fast prompts were processed. It returns how many bytes the state of a token
// has; 0: unknown.
func (l *Lease) judge() float64 {
	keeper := l.keeper()
	if keeper == nil {
		return 0
	}
	for i := range l.pins {
		p := &l.pins[i]
		use := p.told()
		keeper.Shelf.Processed(use.Prompt-use.Cached, use.PromptTime)
		if p.judge != nil && use.Prompt > 0 {
			p.judge(use)
		}
	}
	return keeper.Shelf.Rates().Bytes
}

// keeper returns what saves the slots of the lease; nil: nothing does.
func (l *Lease) keeper() *process.Slots {
	if l.process == nil {
		return nil
	}
	launched := l.process.Launched()
	if launched == nil {
		return nil
	}
	return launched.Slots
}

// pin is a slot of a lease.
type pin struct {
	schedule.Loan
	sent     atomic.Bool        // a request for it was made
	used     atomic.Bool        // the engine has begun to answer a request on it
	restored atomic.Int64       // tokens of the state that was restored into it
	emptied  atomic.Bool        // a restore has failed
	saved    atomic.Int64       // tokens of what it held before that were saved
	judge    func(schedule.Use) // told what the request has used of a restored state; nil: none was restored

	mu  sync.Mutex
	use schedule.Use // as last told
}

func (p *pin) tell(u schedule.Use) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.use = u
}

// told returns what was told last. It is zero if nothing was.
func (p *pin) told() schedule.Use {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.use
}

// PinFunc edits a request's body so that the engine uses one slot for it. Without reuse, the slot's cached prompt must not be used.
type PinFunc func(body [][]byte, slot int, reuse bool) [][]byte

// Pinned returns the body of a generating request as the instance must get it. Where requests choose their slots, the bodies of a lease are
// spread over its slots. Don't pin other requests, such as /detokenize: their answers would count as the use of a slot.
func (l *Lease) Pinned(body Payload, name PinFunc) Payload {
	if len(l.pins) == 0 {
		return body
	}
	n := int(l.pinned.Add(1)) - 1
	p := &l.pins[n%len(l.pins)]
	p.sent.Store(true)
	body.Pieces = name(body.Pieces, p.Slot, p.Reuse || p.used.Load() || p.restored.Load() > 0)
	body.pin = p
	return body
}

// uses returns what was made of the slots.
func (l *Lease) uses() []schedule.Use {
	all := l.used[:0]
	for i := range l.pins {
		p := &l.pins[i]
		if !p.sent.Load() && p.restored.Load() == 0 && !p.emptied.Load() && p.saved.Load() == 0 {
			continue
		}
		use := p.told()
		use.Slot, use.Begun, use.Emptied = p.Slot, p.used.Load(), p.emptied.Load()
		use.Restored, use.Saved = int(p.restored.Load()), int(p.saved.Load())
		all = append(all, use)
	}
	return all
}

// Payload is the body of a request to an engine. It may consist of several pieces, so that a large body needn't be copied to be edited.
type Payload struct {
	Pieces [][]byte         // sent one after the other
	Memory http1.RefCounted // the buffer that they are part of; nil: the garbage collector frees it

	// Demand is what the request demands, of which other nodes of a cluster are told; nil: nothing.
	Demand *schedule.Demand

	pin    *pin   // the slot that it is pinned to; nil: none
	moving func() // called as a large one is sent, by the transport; may be nil
}

// Body returns the payload as the body of a request.
func (p *Payload) Body() http1.Body {
	return http1.Body{Pieces: p.Pieces, Memory: p.Memory, Moving: p.moving}
}

// Size returns the number of bytes.
func (p Payload) Size() int64 {
	body := p.Body()
	return body.Size()
}

// copied is the size in bytes up to which a payload is copied into one piece. The transport sends a body that it knows to be
// in memory together with the headers.
const copied = 64 << 10

// Reader returns a reader of all pieces, for one request.
func (p Payload) Reader() io.ReadCloser {
	if p.Size() <= copied {
		return io.NopCloser(bytes.NewReader(bytes.Join(p.Pieces, nil)))
	}
	if p.Memory != nil {
		p.Memory.Retain()
	}
	return &payloadReader{rest: slices.Clone(p.Pieces), memory: p.Memory, moving: p.moving}
}

type payloadReader struct {
	rest   net.Buffers
	memory http1.RefCounted
	moving func()
}

func (r *payloadReader) Read(p []byte) (int, error) {
	if r.moving != nil {
		r.moving()
	}
	return r.rest.Read(p)
}

// Close releases the memory. The transport always closes the body when it has finished reading.
func (r *payloadReader) Close() error {
	if r.memory != nil {
		r.memory.Release()
		r.memory = nil
	}
	return nil
}

// Used records what the answer to a body that [Lease.Pinned] returned has told so far. The last call counts.
func (p Payload) Used(u schedule.Use) {
	if p.pin != nil {
		u.Slot = p.pin.Slot
		p.pin.tell(u)
	}
}

// maxDeaths is how many engines may end at a restore before a request does without.
const maxDeaths = 2

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
