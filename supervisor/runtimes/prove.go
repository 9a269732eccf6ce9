package runtimes

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/engine"
)

// proveTimeout is long, because some systems scan a new executable when it is first started.
const proveTimeout = 60 * time.Second

// unfitError says that a downloaded engine doesn't run on this machine.
type unfitError struct{ cause error }

func (e *unfitError) Error() string { return e.cause.Error() }
func (e *unfitError) Unwrap() error { return e.cause }

// prove starts an engine to get its version. An engine that can't do that isn't installed.
func prove(ctx context.Context, path string) (version string, err error) {
	limited, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	output, err := engine.Ask(limited, path, "--version")
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", &unfitError{fmt.Errorf("it doesn't start here: %w%s", err, saying(output))}
	}
	version = engine.LlamaVersion(output)
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
