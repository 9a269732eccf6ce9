// Package engine is shared by the packages that download engines and that run them. It has the environment of an engine, and
// queries to an executable.
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
	// busyPatience bounds the last pause. The sum of all pauses is twice as long.
	busyPatience = time.Second
	// outputDelay bounds the wait for children of the executable that hold its output open.
	outputDelay = 2 * time.Second
)

// Ask runs an executable with arguments, and returns its output, standard output and error together, even if it fails.
//
// The file may have just been written. If another goroutine starts a process at that moment, the child holds the file open for
// writing until it execs, and starting the file fails with ETXTBSY (golang.org/issue/22315). Ask then tries again.
func Ask(ctx context.Context, path string, arguments ...string) (output string, err error) {
	isScript := IsScript(path)
	for wait := time.Millisecond; ; wait *= 2 {
		cmd := exec.CommandContext(ctx, path, arguments...)
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

// llama-server prints "version: 0.7.0 (build 11669, commit 1a2b3c4)", or in older versions "version: 6123 (1a2b3c4)".
var llamaVersion = regexp.MustCompile(`(?m)^version: (?:.*\(build (\d+)\b|(\d+) \()`)

// LlamaVersion returns the version in llama-server's output for --version, such as "b11669", or "".
func LlamaVersion(output string) string {
	m := llamaVersion.FindStringSubmatch(output)
	if m == nil {
		return ""
	}
	return "b" + m[1] + m[2]
}
