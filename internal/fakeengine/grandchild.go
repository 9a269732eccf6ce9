package fakeengine

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

const (
	grandchildArg = "--fakeengine-grandchild"
	// grandchildLife bounds what a leak can do.
	grandchildLife = 10 * time.Minute
)

// fork starts a grandchild and tells of it.
func (p *process) fork(g Grandchild) error {
	cmd := exec.Command(p.self, grandchildArg)
	if g.Setsid {
		cmd.SysProcAttr = detached()
	}
	if g.HoldPipes {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("forking a grandchild: %w", err)
	}
	p.journal.tell(Event{Kind: Forked, PID: cmd.Process.Pid, Parent: os.Getpid()})
	go func() { _ = cmd.Wait() }() // no zombie while the engine lives
	return nil
}
