//go:build unix

package child

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

const (
	guardShell = "/bin/sh"
	// guardScript kills the shell's process group when its standard input ends. Signals that a whole group gets must not end
	// the shell before. It uses only commands that are built into every shell.
	guardScript = `trap "" TERM INT HUP QUIT; read _; kill -KILL 0`
	guardName   = "lmcaddy-guard" // shown by ps
)

// Guard is a shell that leads the process group of a child, and kills that group when this process ends in any way: the system then closes
// the shell's standard input. A nil Guard stands for none. As long as the shell isn't waited for, no other group gets the id of this one.
type Guard struct {
	cmd   *exec.Cmd
	stdin io.Closer // cmd.Wait closes it
}

// NewGuard starts a guard. It must be ended, after the child has exited.
func NewGuard(m Mark) (*Guard, error) { return newGuard(guardShell, m) }

func newGuard(shell string, m Mark) (*Guard, error) {
	cmd := exec.Command(shell, "-c", guardScript, guardName)
	cmd.Env = []string{m.Env()}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // without Pdeathsig, which would end it too early
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("the guard's input: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	return &Guard{cmd, stdin}, nil
}

// Attributes are those of a child that is to be in the group.
func (g *Guard) Attributes() *syscall.SysProcAttr {
	attributes := OwnGroup()
	if g != nil {
		attributes.Pgid = g.cmd.Process.Pid
	}
	return attributes
}

// Adopt returns the group of a child that was started with Attributes.
func (g *Guard) Adopt(p *os.Process) (Group, error) {
	if g != nil {
		p = g.cmd.Process
	}
	return Adopt(p)
}

// End ends the guard. What else is in its group is left alone.
func (g *Guard) End() {
	if g == nil {
		return
	}
	_ = g.cmd.Process.Kill() // before its input closes, which would end the group
	_ = g.cmd.Wait()
}
