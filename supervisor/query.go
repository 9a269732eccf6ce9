package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/sandbox"
)

// queryDelay bounds the wait for the output of a query that has ended.
const queryDelay = 2 * time.Second

// queryConfined runs a command that ends by itself, such as one that lists devices, in the sandbox that a launch gets, with a temporary
// folder instead of the launch's. It returns the output, standard output and error together, also if the command fails or ctx ends. Of
// the launch only what the sandbox is made of counts. A launch without a sandbox gets none here.
func queryConfined(ctx context.Context, l Launch, command Cmd, b Build) (output string, err error) {
	if l.Folder, err = os.MkdirTemp("", shortPrefix); err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(l.Folder) }()
	var box *sandbox.Box
	if l.isConfined() {
		if box, err = sandbox.Prepare(l.rules(&command, b)); err != nil {
			return "", fmt.Errorf("the engine's sandbox: %w", err)
		}
		defer box.Close()
	}
	cmd := exec.CommandContext(ctx, command.Path, command.Args...)
	cmd.Env = append(command.Env, l.places()...)
	cmd.Dir = l.Folder
	cmd.SysProcAttr = child.OwnGroup()
	cmd.WaitDelay = queryDelay
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	endThread, err := startOnThread(box, cmd)
	defer endThread()
	if err != nil {
		return "", fmt.Errorf("%s can't be started: %w", cmd.Path, err)
	}
	group, _ := child.Adopt(cmd.Process) // after an error, only what it starts may outlive it
	err = cmd.Wait()
	group.Kill()
	return out.String(), err
}
