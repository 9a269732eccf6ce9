package command

import (
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// openInterface is what Caddy's admin endpoint warns of whenever it doesn't look at the Host header. On a Unix socket that
// is Caddy's own decision, and the warning is false: the socket's permissions, not the header, say who may connect.
const openInterface = "admin endpoint on open interface; host checking disabled"

// wrapLog puts a core around that of the default logger.
func wrapLog(wrap func(zapcore.Core) zapcore.Core) {
	_, logger, _ := caddy.BufferedLog() // the only way to put another logger in its place: what is logged meanwhile is kept
	caddy.UnbufferDefaultLogger(logger.WithOptions(zap.WrapCore(wrap)))
}

// warningFilter drops the false warning of a Unix socket, and nothing else. The address is a field, so only Write knows it.
type warningFilter struct{ zapcore.Core }

func (f warningFilter) With(fields []zapcore.Field) zapcore.Core {
	return warningFilter{f.Core.With(fields)}
}

func (f warningFilter) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Message != openInterface || entry.LoggerName != "admin" {
		return f.Core.Check(entry, checked)
	}
	if f.Core.Check(entry, nil) == nil { // its level or its logger is left out anyway
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
