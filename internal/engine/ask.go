// Package engine is what those who fetch engines and those who run them share: the environment that an engine gets, and asking
// an executable what it is.
package engine

import (
	"context"
	"errors"
	"os/exec"
	"regexp"
	"syscall"
	"time"
)

const (
	// busyPatience bounds the last wait for a file that is busy; all of them are twice as long together.
	busyPatience = time.Second
	// outputDelay bounds the wait for output that an executable's children hold open when it has ended itself.
	outputDelay = 2 * time.Second
)

// Ask runs an executable with one flag, and returns what it writes, to either output, also when it fails.
//
// The file may have just been written. When another goroutine starts a process at that moment, the child has the file open
// for writing until it has become its program, and the system calls ours busy (golang.org/issue/22315): it is tried again.
func Ask(ctx context.Context, path, flag string) (output string, err error) {
	isScript := IsScript(path)
	for wait := time.Millisecond; ; wait *= 2 {
		cmd := exec.CommandContext(ctx, path, flag)
		cmd.Env = Environment(isScript)
		cmd.WaitDelay = outputDelay
		out, err := cmd.CombinedOutput()
		if !errors.Is(err, syscall.ETXTBSY) || wait > busyPatience {
			return string(out), err
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// llama-server says "version: 0.7.0 (build 11669, commit 1a2b3c4)"; before it had releases, "version: 6123 (1a2b3c4)".
var llamaVersion = regexp.MustCompile(`(?m)^version: (?:.*\(build (\d+)\b|(\d+) \()`)

// LlamaVersion reads what llama-server answers to --version, as "b11669". It is empty where that says no version.
func LlamaVersion(output string) string {
	m := llamaVersion.FindStringSubmatch(output)
	if m == nil {
		return ""
	}
	return "b" + m[1] + m[2]
}
