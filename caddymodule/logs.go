package caddymodule

import (
	"errors"
	"log/slog"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lmcaddy/lmcaddy/internal/logs"
)

// recent has what was logged last. It is the process's, not a configuration's: a reload begins no new one.
var recent = logs.New()

// recorded returns a module's logger whose records are kept as well, those at debug level whether or not the configuration logs them. If it
// is sparing, as for single requests, these are made only while somebody follows them, since they cost time.
func recorded(ctx caddy.Context, name string, sparing bool) *slog.Logger {
	return slog.New(recent.Handler(name, ctx.Slogger().Handler(), sparing))
}

// Recorded returns a core that keeps what Caddy logs above debug level, and passes all of it on to another core. Values that
// aren't simple are left out: requests are among them, with all their headers. In all others secrets are replaced, for either log.
func Recorded(core zapcore.Core) zapcore.Core { return recordedCore{core, nil} }

type recordedCore struct {
	zapcore.Core
	with []zapcore.Field
}

func (c recordedCore) Enabled(level zapcore.Level) bool {
	return level >= zapcore.InfoLevel || c.Core.Enabled(level)
}

func (c recordedCore) With(fields []zapcore.Field) zapcore.Core {
	fields = redacted(fields)
	return recordedCore{c.Core.With(fields), append(slices.Clip(c.with), fields...)}
}

func (c recordedCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		checked = checked.AddCore(entry, c)
	}
	return checked
}

func (c recordedCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	entry.Message = logs.Redact(entry.Message)
	fields = redacted(fields)
	if entry.Level >= zapcore.InfoLevel {
		c.keep(entry, fields)
	}
	if passed := c.Core.Check(entry, nil); passed != nil { // it decides by itself, by the message too
		passed.Write(fields...)
	}
	return nil
}

func (c recordedCore) keep(entry zapcore.Entry, fields []zapcore.Field) {
	simple := zapcore.NewMapObjectEncoder()
	var attrs []slog.Attr
	for _, list := range [][]zapcore.Field{c.with, fields} {
		for _, f := range list {
			switch f.Type {
			case zapcore.ObjectMarshalerType, zapcore.ReflectType, zapcore.InlineMarshalerType, zapcore.BinaryType,
				zapcore.ByteStringType, zapcore.NamespaceType:
				continue
			}
			f.AddTo(simple)
			if value, ok := simple.Fields[f.Key]; ok {
				attrs = append(attrs, slog.Any(f.Key, value))
			}
		}
	}
	r := logs.Fields(attrs...)
	r.Time, r.Logger, r.Message = entry.Time, entry.LoggerName, entry.Message
	r.Level = min(slog.LevelError, 4*slog.Level(entry.Level)) // slog's levels have room for others between them
	recent.Add(&r)
}

// redacted returns fields without the secrets in those that are or say a text, and in lists of such.
func redacted(fields []zapcore.Field) []zapcore.Field {
	clean := slices.Clone(fields)
	for i, f := range clean {
		switch f.Type {
		case zapcore.StringType:
			clean[i].String = logs.Redact(f.String)
		case zapcore.ErrorType, zapcore.StringerType, zapcore.ByteStringType, zapcore.ArrayMarshalerType:
			simple := zapcore.NewMapObjectEncoder()
			f.AddTo(simple)
			value, found := logs.RedactAny(simple.Fields[f.Key])
			if list, isList := value.([]any); found && isList {
				clean[i] = zap.Array(f.Key, anyList(list))
			} else if found {
				clean[i] = zap.Any(f.Key, value)
			}
		}
	}
	return clean
}

// anyList is a list in a log, of whatever it contains.
type anyList []any

func (l anyList) MarshalLogArray(to zapcore.ArrayEncoder) error {
	var errs []error
	for _, item := range l {
		errs = append(errs, to.AppendReflected(item))
	}
	return errors.Join(errs...)
}
