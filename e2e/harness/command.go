package harness

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Result is what a command came to.
type Result struct {
	Status int
	Output string // both of its outputs
}

// Command runs lmcaddy with arguments to its end, in the working folder.
func (h *Home) Command(args ...string) Result {
	h.T.Helper()
	return h.CommandWithInput("", args...)
}

// CommandWithInput is Command with something on standard input.
func (h *Home) CommandWithInput(input string, args ...string) Result {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.program(), args...)
	cmd.Dir = h.Work
	cmd.Env = h.environment()
	cmd.Stdin = strings.NewReader(input)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it may be a server that should not have started
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		h.T.Fatalf("lmcaddy %v didn't end within %s:\n%s", args, Patience, out)
	case err != nil && !errors.As(err, &exit):
		h.T.Fatalf("lmcaddy %v: %v\n%s", args, err, out)
	}
	return Result{cmd.ProcessState.ExitCode(), string(out)}
}
