package harness

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Result is the result of a command.
type Result struct {
	Status int
	Output string // standard output and error
}

// Command runs lmcaddy with arguments to its end, in the working folder.
func (h *Home) Command(args ...string) Result {
	h.T.Helper()
	return h.CommandWithInput("", args...)
}

// CommandWithInput is Command with a text on standard input.
func (h *Home) CommandWithInput(input string, args ...string) Result {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.Program(), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = h.Work, h.environment(), h.attributes()
	cmd.Stdin = strings.NewReader(input)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it may be a server that should not have started
	cmd.WaitDelay = 5 * time.Second
	file, err := os.CreateTemp(h.Work, "out") // not a pipe, which a server in the background would keep open
	if err != nil {
		h.T.Fatal(err)
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }()
	cmd.Stdout, cmd.Stderr = file, file
	err = cmd.Run()
	out, failed := os.ReadFile(file.Name())
	if failed != nil {
		h.T.Fatal(failed)
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		h.T.Fatalf("lmcaddy %v didn't end within %s:\n%s", args, Patience, out)
	case err != nil && !errors.As(err, &exit):
		h.T.Fatalf("lmcaddy %v: %v\n%s", args, err, out)
	}
	return Result{cmd.ProcessState.ExitCode(), string(out)}
}
