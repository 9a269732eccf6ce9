package supervisor

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// maxChatter is for how many times the stall time an engine may go on writing without getting on.
const maxChatter = 12

// loading watches over a load. Only its getting on counts, not the clock: a large model on a slow disk takes as long as it
// takes. Writing anything counts as getting on, too, but not for ever.
type loading struct {
	ready chan struct{} // closed when it has succeeded
	over  atomic.Bool   // it has succeeded or failed
	tells atomic.Bool   // the engine tells its state by itself

	mu       sync.Mutex
	stall    func() time.Duration
	timer    *time.Timer // fires when it gets on no more; nil: it hasn't begun
	moved    time.Time   // when it last got on, by more than words
	progress float64
	said     [SignalFlashAttention + 1]bool // kinds of signals that were told
	why      string                         // it failed
}

// begin has stalled called when the load gets on no more.
func (o *loading) begin(options *Options, stalled func(why string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stall, o.moved = options.stall, time.Now()
	o.timer = time.AfterFunc(o.stall(), func() { stalled(o.complaint()) })
}

func (o *loading) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer.Stop()
}

// complaint says how the load stalled.
func (o *loading) complaint() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	stall := o.stall()
	if time.Since(o.moved) > maxChatter*stall {
		return fmt.Sprintf("the engine got no further for %s while it was loading, though it went on writing", time.Since(o.moved).Round(time.Second))
	}
	return fmt.Sprintf("the engine said nothing for %s while it was loading", stall)
}

// heard is told that the engine has written something.
func (o *loading) heard() {
	if o.over.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if stall := o.stall(); time.Since(o.moved) <= maxChatter*stall {
		o.timer.Reset(stall)
	}
}

// isNews tells whether a signal says something new.
func (o *loading) isNews(sig Signal) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch sig.Kind {
	case SignalProgress:
		o.tells.Store(true)
		isFirst := !o.said[sig.Kind]
		o.said[sig.Kind] = true
		if sig.Progress <= o.progress {
			return isFirst
		}
		o.progress = sig.Progress
	case SignalTrouble, SignalPortTaken, SignalOutOfMemory:
		wasSaid := o.said[sig.Kind]
		o.said[sig.Kind] = true
		return !wasSaid
	case SignalBuffer, SignalFlashAttention:
	default:
		return false
	}
	o.moved = time.Now()
	return true
}

// succeed is true for the first who finds the engine ready, unless the load has failed.
func (o *loading) succeed() bool {
	if !o.over.CompareAndSwap(false, true) {
		return false
	}
	close(o.ready)
	return true
}

// fail is true unless the load has succeeded, or failed already.
func (o *loading) fail(why string) bool {
	if !o.over.CompareAndSwap(false, true) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.why = why
	return true
}

func (o *loading) isOver() bool { return o.over.Load() }

// whyStopped is why the process was ended by us.
func (o *loading) whyStopped() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.why != "" {
		return o.why
	}
	return "it was told to stop"
}
