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

// SparesGarbage is the environment of commands, which end before they have much of it: a third of the processor time of a command
// is collecting garbage of its start.
const SparesGarbage = "GOGC=400"

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
	out := h.outputFile()
	status := h.run(input, out, out, args)
	return Result{status, h.content(out)}
}

// CommandOutputs is Command that returns standard output and standard error apart.
func (h *Home) CommandOutputs(args ...string) (status int, stdout, stderr string) {
	h.T.Helper()
	out, messages := h.outputFile(), h.outputFile()
	status = h.run("", out, messages, args)
	return status, h.content(out), h.content(messages)
}

// outputFile makes a file for a command's output: not a pipe, which a server in the background would keep open.
func (h *Home) outputFile() *os.File {
	h.T.Helper()
	file, err := os.CreateTemp(h.Work, "out")
	if err != nil {
		h.T.Fatal(err)
	}
	return file
}

// content returns what was written to a file, which is removed.
func (h *Home) content(file *os.File) string {
	h.T.Helper()
	content, err := os.ReadFile(file.Name())
	if err = errors.Join(err, file.Close(), os.Remove(file.Name())); err != nil {
		h.T.Fatal(err)
	}
	return string(content)
}

func (h *Home) run(input string, stdout, stderr *os.File, args []string) (status int) {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.Program(), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = h.Work, append(h.environment(), SparesGarbage), h.attributes()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it may be a server that should not have started
	cmd.WaitDelay = 5 * time.Second
	err := h.Net.do(cmd.Start)
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		h.T.Fatalf("lmcaddy %v didn't end within %s:\n%s", args, Patience, h.content(stdout))
	case err != nil && !errors.As(err, &exit):
		h.T.Fatalf("lmcaddy %v: %v\n%s", args, err, h.content(stdout))
	}
	return cmd.ProcessState.ExitCode()
}
