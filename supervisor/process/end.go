package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// exitError says how a process ended.
type exitError struct{ state *os.ProcessState }

func (e exitError) Error() string { return fmt.Sprintf("the engine ended with %s", e.state) }

func describeExit(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return errors.New("the engine ended")
	case errors.As(err, &exit):
		return exitError{exit.ProcessState}
	default:
		return fmt.Errorf("the engine ended: %w", err)
	}
}

// kindOfEnd returns how a process ended that the supervisor didn't stop. err is that of its exit.
func (p *Process) kindOfEnd(err error) LossKind {
	switch {
	case p.death.why() != "" || p.ctx.Err() != nil: // then it was killed by us
		return Ended
	case wasKilled(err) && oomKills() > p.oomKills.Load():
		return OutOfMemory
	case wasEndedByOthers(err):
		return Killed
	default:
		return Ended
	}
}

// The output of an engine that can't go on says why. It is killed when it has been silent for deathPause, and at the latest
// after deathDelay.
const (
	deathPause = 100 * time.Millisecond
	deathDelay = time.Second
)

// death is the end of an engine that can't go on although its process lives.
type death struct {
	mu     sync.Mutex
	reason string // empty: it can go on
	until  time.Time
	timer  *time.Timer // kills it; nil: it can go on
	ended  bool        // its process has exited
}

// begin has the engine killed soon. Only the first call counts.
func (d *death) begin(reason string, kill func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reason == "" {
		d.reason = reason
	}
	if d.timer != nil || d.ended {
		return
	}
	d.until = time.Now().Add(deathDelay)
	d.timer = time.AfterFunc(deathPause, kill)
}

// heard records that the engine has written something.
func (d *death) heard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.ended {
		d.timer.Reset(min(deathPause, time.Until(d.until)))
	}
}

// end records that the process has exited: another may get its id.
func (d *death) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// why returns why the engine couldn't go on; empty: it could.
func (d *death) why() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reason
}
