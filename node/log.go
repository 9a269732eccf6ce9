package node

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
)

// logSwitch is a log handler whose target may be replaced: the node outlives the configuration whose log it was opened with.
type logSwitch struct {
	to    *atomic.Pointer[slog.Handler]
	marks []func(slog.Handler) slog.Handler // attributes and groups, in order
}

func newLogSwitch(to slog.Handler) logSwitch {
	s := logSwitch{to: &atomic.Pointer[slog.Handler]{}}
	s.to.Store(&to)
	return s
}

func (s logSwitch) Enabled(ctx context.Context, level slog.Level) bool {
	return (*s.to.Load()).Enabled(ctx, level)
}

func (s logSwitch) Handle(ctx context.Context, r slog.Record) error {
	h := *s.to.Load()
	for _, mark := range s.marks {
		h = mark(h)
	}
	return h.Handle(ctx, r)
}

func (s logSwitch) WithAttrs(attrs []slog.Attr) slog.Handler {
	return s.with(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

func (s logSwitch) WithGroup(name string) slog.Handler {
	return s.with(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (s logSwitch) with(mark func(slog.Handler) slog.Handler) slog.Handler {
	s.marks = append(slices.Clip(s.marks), mark)
	return s
}
