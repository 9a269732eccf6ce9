package supervisor

import (
	"sync"
	"sync/atomic"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

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

// tell says what the request has used so far.
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

// PinFunc edits a request's body so that the engine uses one slot for it. Without reuse, the slot's cached prompt must not be
// used.
type PinFunc func(body [][]byte, slot int, reuse bool) [][]byte

// Pinned returns the body of a generating request as the instance must get it. Where requests choose their slots, the bodies of
// a lease are spread over its slots. Don't pin other requests, such as /detokenize: their answers would count as the use of
// a slot.
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
