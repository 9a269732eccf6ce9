package caddymodule

import (
	"log/slog"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/zapcore"

	"github.com/lmcaddy/lmcaddy/internal/logs"
)

// recent has what was logged last. It is the process's, not a configuration's: a reload begins no new one.
var recent = logs.New()

// recorded returns a module's logger whose records are kept as well, those at debug level whether or not the configuration
// logs them.
func recorded(ctx caddy.Context, name string) *slog.Logger {
	return slog.New(recent.Handler(name, ctx.Slogger().Handler(), false))
}

// recordedRequests is like recorded, for the logger of single requests: what it says at debug level costs time, and is made only while
// somebody follows it.
func recordedRequests(ctx caddy.Context, name string) *slog.Logger {
	return slog.New(recent.Handler(name, ctx.Slogger().Handler(), true))
}

// Recorded returns a core that keeps what Caddy logs above debug level, and passes all of it on to another core. Values that
// aren't simple are left out: requests are among them, with all their headers.
func Recorded(core zapcore.Core) zapcore.Core { return recordedCore{core, nil} }

type recordedCore struct {
	zapcore.Core
	with []zapcore.Field
}

func (c recordedCore) Enabled(level zapcore.Level) bool {
	return level >= zapcore.InfoLevel || c.Core.Enabled(level)
}

func (c recordedCore) With(fields []zapcore.Field) zapcore.Core {
	return recordedCore{c.Core.With(fields), append(slices.Clip(c.with), fields...)}
}

func (c recordedCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Level >= zapcore.InfoLevel {
		checked = checked.AddCore(entry, keeper(c.with))
	}
	return c.Core.Check(entry, checked)
}

// keeper is a core that only keeps what is written to it. It is the fields of its logger.
type keeper []zapcore.Field

func (keeper) Enabled(zapcore.Level) bool                                           { return true }
func (k keeper) With([]zapcore.Field) zapcore.Core                                  { return k }
func (keeper) Check(zapcore.Entry, *zapcore.CheckedEntry) (_ *zapcore.CheckedEntry) { return nil }
func (keeper) Sync() error                                                          { return nil }

func (k keeper) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	simple := zapcore.NewMapObjectEncoder()
	var attrs []slog.Attr
	for _, list := range [][]zapcore.Field{k, fields} {
		for _, f := range list {
			switch f.Type {
			case zapcore.ObjectMarshalerType, zapcore.ReflectType, zapcore.InlineMarshalerType, zapcore.BinaryType, zapcore.ByteStringType, zapcore.NamespaceType:
				continue
			}
			f.AddTo(simple)
			if value, ok := simple.Fields[f.Key]; ok {
				attrs = append(attrs, slog.Any(f.Key, value))
			}
		}
	}
	r := logs.Fields(attrs...)
	r.Time, r.Logger, r.Message, r.Level = entry.Time, entry.LoggerName, logs.Redact(entry.Message), levelOf(entry.Level)
	recent.Add(&r)
	return nil
}

func levelOf(level zapcore.Level) slog.Level {
	switch {
	case level >= zapcore.ErrorLevel:
		return slog.LevelError
	case level == zapcore.WarnLevel:
		return slog.LevelWarn
	case level == zapcore.InfoLevel:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}
