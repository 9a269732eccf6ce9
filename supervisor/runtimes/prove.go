package runtimes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/engine"
)

// proveTimeout is long, because some systems scan new executables and libraries when they are first loaded.
const proveTimeout = 3 * time.Minute

// unfitError says that a downloaded engine doesn't run on this machine.
type unfitError struct{ cause error }

func (e *unfitError) Error() string { return e.cause.Error() }
func (e *unfitError) Unwrap() error { return e.cause }

// prove starts an engine to get its version, which parse finds in the output. An engine that can't do that isn't installed.
func prove(ctx context.Context, parse func(output string) string, path string, arguments ...string) (version string, err error) {
	limited, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	output, err := engine.Ask(limited, path, slices.Concat(arguments, []string{"--version"})...)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", &unfitError{fmt.Errorf("it doesn't start here: %w%s", err, saying(output))}
	}
	version = parse(output)
	if version == "" {
		return "", &unfitError{fmt.Errorf("it started, but told no version%s", saying(output))}
	}
	return version, nil
}

// saying quotes the last line of a program's output, which usually is the reason.
func saying(output string) string {
	text := strings.TrimSpace(output)
	if text == "" {
		return ""
	}
	return ": " + strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
