package process

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// maxChatter is how many times the stall time an engine may keep writing or computing without progress: its threads may wait by computing.
const maxChatter = 10

// leastLateness is by how much a timer fires late at least if this process stood still: the machine was suspended, or a container
// paused, or too many others were on its processors.
const leastLateness = time.Second

// loading tracks the progress of a load. A load has no deadline, since a large model on a slow disk takes long; it fails when
// it makes no progress. Any output counts as progress, too, but not forever.
type loading struct {
	listening chan struct{} // closed when the engine has said that it listens
	listens   sync.Once
	reports   atomic.Bool // the engine reports its state by itself

	mu       sync.Mutex
	stall    func() time.Duration
	timer    *time.Timer // fires when the load stalls; nil: it hasn't begun
	due      time.Time   // when the timer fires
	moved    time.Time   // when it last made progress other than output
	progress float64
	said     [schedule.SignalDead + 1]bool // kinds of signals that were reported
}

// begin starts the timer that calls stalled when the load makes no progress.
func (o *loading) begin(stall func() time.Duration, stalled func(why string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stall, o.moved = stall, time.Now()
	o.due = o.moved.Add(o.stall())
	o.timer = time.AfterFunc(o.stall(), func() {
		if !o.discountsPause(time.Now()) {
			stalled(o.stallReason())
		}
	})
}

// discountsPause reports whether the timer is late, and gives the load the time for which this process stood still.
func (o *loading) discountsPause(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	late := now.Sub(o.due)
	if late < leastLateness {
		return false
	}
	o.moved = o.moved.Add(late)
	o.wait(now, min(late, o.stall()))
	return true
}

// wait sets the timer. The caller holds o.mu.
func (o *loading) wait(now time.Time, d time.Duration) {
	o.due = now.Add(d)
	o.timer.Reset(d)
}

func (o *loading) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer.Stop()
}

// stallReason returns how the load stalled.
func (o *loading) stallReason() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	stall := o.stall()
	if time.Since(o.moved) > maxChatter*stall {
		return fmt.Sprintf("the engine made no progress for %s while it was loading, though it kept writing or computing",
			time.Since(o.moved).Round(time.Second))
	}
	return fmt.Sprintf("the engine wrote nothing for %s while it was loading", stall)
}

// heard records that the engine has written something, or computed.
func (o *loading) heard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if stall := o.stall(); time.Since(o.moved) <= maxChatter*stall {
		o.wait(time.Now(), stall)
	}
}

// advanced records progress of an engine that doesn't report any.
func (o *loading) advanced() {
	o.mu.Lock()
	o.moved = time.Now()
	o.mu.Unlock()
	o.heard()
}

// knowsTrouble reports whether the engine has said why the load fails.
func (o *loading) knowsTrouble() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said[schedule.SignalTrouble]
}

// isNews reports whether a signal says something new.
func (o *loading) isNews(sig schedule.Signal) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch sig.Kind {
	case schedule.SignalProgress:
		o.reports.Store(true)
		isFirst := !o.said[sig.Kind]
		o.said[sig.Kind] = true
		if sig.Progress <= o.progress {
			return isFirst
		}
		o.progress = sig.Progress
	case schedule.SignalListening:
		o.listens.Do(func() { close(o.listening) })
		return false
	case schedule.SignalTrouble, schedule.SignalPortTaken, schedule.SignalOutOfMemory, schedule.SignalNoDevice, schedule.SignalReduced:
		wasSaid := o.said[sig.Kind]
		o.said[sig.Kind] = true
		return !wasSaid
	case schedule.SignalBuffer, schedule.SignalFlashAttention, schedule.SignalLayers:
	default:
		return false
	}
	o.moved = time.Now()
	return true
}
