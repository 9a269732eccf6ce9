package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
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
func (p *process) kindOfEnd(err error) LossKind {
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
