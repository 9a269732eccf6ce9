package command

import (
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap/zapcore"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// plainErrors prints the error that ends one of Caddy's own commands as a sentence, as our commands do. Caddy logs it, with the
// logger that has no name and no fields.
type plainErrors struct {
	zapcore.Core
	to io.Writer
	// isServing is true for a logger that a configuration has set up. It outlives the start, so only an error with Caddy's
	// prefix for errors of the start ends the command.
	isServing bool
}

const (
	startFailed = "loading initial config: "
	// stopFailed is a warning that Caddy logs before the same error ends the command.
	stopFailed = "failed using API to stop instance"
)

// With returns the wrapped core: a logger with fields never logs how a command ended.
func (p plainErrors) With(fields []zapcore.Field) zapcore.Core { return p.Core.With(fields) }

func (p plainErrors) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	isOurs := entry.Level == zapcore.ErrorLevel && (!p.isServing || strings.HasPrefix(entry.Message, startFailed))
	if entry.LoggerName == "" && (isOurs || entry.Message == stopFailed) {
		return checked.AddCore(entry, p)
	}
	return p.Core.Check(entry, checked)
}

func (p plainErrors) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	switch {
	case entry.Message == stopFailed:
		return nil
	case len(fields) > 0:
		return p.Core.Write(entry, fields)
	}
	_, err := fmt.Fprintln(p.to, "Error:", terminal.Text(plainly(entry.Message)))
	return err
}

// plainly rewrites errors of Caddy's that don't say what to do.
func plainly(said string) string {
	said = strings.TrimPrefix(said, startFailed)
	if said == "no config file to load" {
		return "there is no Caddyfile in this folder: name one with --config FILE"
	}
	_, dialed, ok := strings.Cut(said, ": dial ")
	if !ok || !strings.Contains(said, "performing request: ") {
		return said
	}
	return fmt.Sprintf("%s (dial %s): choose another home with LMCADDY_HOME, or name the admin endpoint with --address", kit.NothingRuns(), dialed)
}
