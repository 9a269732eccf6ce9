package command

import (
	"strings"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

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
