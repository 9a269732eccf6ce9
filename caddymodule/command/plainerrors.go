package command

import (
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap/zapcore"
)

// plainErrors tells the error that ends one of Caddy's own commands as other commands do, as a sentence. Caddy makes it a line
// of its log, by the logger without a name and without fields.
type plainErrors struct {
	zapcore.Core
	to io.Writer
	// isServing is true of a logger that a configuration has set up: it outlives the start, so only what Caddy calls an error
	// of the start is one.
	isServing bool
}

const (
	startFailed = "loading initial config: "
	// stopFailed is what Caddy warns of before the same error ends the command.
	stopFailed = "failed using API to stop instance"
)

// With gives a logger with fields, which is none that tells how a command ended.
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
	_, err := fmt.Fprintln(p.to, "Error:", plainly(entry.Message))
	return err
}

// plainly is an error of Caddy's in our words, where it hasn't good ones.
func plainly(said string) string {
	said = strings.TrimPrefix(said, startFailed)
	_, dialed, ok := strings.Cut(said, ": dial ")
	if !ok || !strings.Contains(said, "performing request: ") {
		return said
	}
	return fmt.Sprintf("%s (dial %s): choose another home with LMCADDY_HOME, or name the admin endpoint with --address", nothingRuns(), dialed)
}
