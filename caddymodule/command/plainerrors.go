package command

import (
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// plainErrors prints the error that ends one of Caddy's own commands as a sentence, as our commands do. Caddy logs it, with the
// logger that has no name and no fields.
type plainErrors struct {
	zapcore.Core
	to io.Writer
	// isServing is true for a logger that a configuration has set up. It outlives the start, so what it says is logged as well.
	isServing bool
}

// With returns the wrapped core: a logger with fields never logs how a command ended.
func (p plainErrors) With(fields []zapcore.Field) zapcore.Core { return p.Core.With(fields) }

func (p plainErrors) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.LoggerName == "" && entry.Level == zapcore.ErrorLevel {
		return checked.AddCore(entry, p)
	}
	return p.Core.Check(entry, checked)
}

func (p plainErrors) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	if p.isServing || len(fields) > 0 {
		if err := p.Core.Write(entry, fields); err != nil || len(fields) > 0 {
			return err
		}
	}
	_, err := fmt.Fprintln(p.to, "Error:", terminal.Text(entry.Message))
	return err
}

// checkStop returns an error if `lmcaddy stop` is to stop the server of the home, and none runs.
func checkStop(dir home.Dir, args []string) error {
	if len(args) > 0 { // they may name another
		return nil
	}
	conn, err := net.Dial("unix", dir.AdminSocket())
	if err != nil {
		return fmt.Errorf("%s (%w): choose another home with LMCADDY_HOME, or name the admin endpoint with --address", kit.NothingRuns(),
			err)
	}
	return conn.Close()
}

func wrapLog(wrap func(zapcore.Core) zapcore.Core) {
	_, logger, _ := caddy.BufferedLog() // the only way to replace it; what is logged meanwhile isn't lost
	caddy.UnbufferDefaultLogger(logger.WithOptions(zap.WrapCore(wrap)))
}

// warningFilter drops warnings of Caddy's admin endpoint that it doesn't check the Host header of a Unix socket, which it never does: the
// socket's permissions say who may connect. The address is a field, so only Write sees it.
type warningFilter struct{ zapcore.Core }

func (f warningFilter) With(fields []zapcore.Field) zapcore.Core {
	return warningFilter{f.Core.With(fields)}
}

func (f warningFilter) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Level != zapcore.WarnLevel || entry.LoggerName != "admin" {
		return f.Core.Check(entry, checked)
	}
	if f.Core.Check(entry, nil) == nil { // it isn't logged anyway
		return checked
	}
	return checked.AddCore(entry, f)
}

func (f warningFilter) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	for _, field := range fields {
		if field.Key == "address" && strings.HasPrefix(field.String, "unix/") {
			return nil
		}
	}
	return f.Core.Write(entry, fields)
}
