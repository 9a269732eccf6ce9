package runtimes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// proveTimeout is long, because an operating system may examine a new executable at its first start.
const proveTimeout = 60 * time.Second

// busyPatience bounds the last wait for a file that is busy; all of them are twice as long together.
const busyPatience = time.Second

// unfitError says that an engine was fetched but doesn't run here.
type unfitError struct{ cause error }

func (e *unfitError) Error() string { return e.cause.Error() }
func (e *unfitError) Unwrap() error { return e.cause }

// The engine says "version: 0.7.0 (build 11669, commit 1a2b3c4)"; before it had releases, "version: 6123 (1a2b3c4)".
var (
	versionWithBuild = regexp.MustCompile(`(?m)^version: .*\(build (\d+)\b`)
	versionOnlyBuild = regexp.MustCompile(`(?m)^version: (\d+) \(`)
)

// prove starts an engine just to say its version. One that can't do that isn't installed.
func prove(ctx context.Context, path string) (version string, err error) {
	limited, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	output, err := sayVersion(limited, path)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", &unfitError{fmt.Errorf("it doesn't start here: %w%s", err, saying(output))}
	}
	version = parseVersion(string(output))
	if version == "" {
		return "", &unfitError{fmt.Errorf("it started, but told no version%s", saying(output))}
	}
	return version, nil
}

// sayVersion starts an engine, whose file has just been written. When another goroutine starts a process at that moment, the
// child has the file open for writing until it has become its program, and the system calls ours busy
// (golang.org/issue/22315).
func sayVersion(ctx context.Context, path string) (output []byte, err error) {
	for wait := time.Millisecond; ; wait *= 2 {
		command := exec.CommandContext(ctx, path, "--version")
		command.Env = engineEnvironment(os.Environ())
		command.WaitDelay = time.Second
		output, err = command.CombinedOutput()
		if !errors.Is(err, syscall.ETXTBSY) || wait > busyPatience {
			return output, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func parseVersion(output string) string {
	for _, form := range []*regexp.Regexp{versionWithBuild, versionOnlyBuild} {
		if match := form.FindStringSubmatch(output); match != nil {
			return "b" + match[1]
		}
	}
	return ""
}

// engineEnvironment leaves out what would set the engine's options: one that it no longer knows ends it.
func engineEnvironment(environment []string) []string {
	var kept []string
	for _, entry := range environment {
		if !strings.HasPrefix(entry, "LLAMA_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// saying quotes the last line of a program's output, where the reason usually stands.
func saying(output []byte) string {
	text := strings.TrimSpace(string(output))
	if text == "" {
		return ""
	}
	return ": " + strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
