package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// requestField is the field with a request's id.
const requestField = "request"

type requestKey struct{}

// requestContext is a context with a request's id. With context.WithValue, the id would be copied for each request.
type requestContext struct {
	context.Context
	id string
}

func (c *requestContext) Value(key any) any {
	if key == (requestKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// WithRequest adds a request's id to its context: records that are logged with the context have it as the field "request".
func WithRequest(ctx context.Context, id string) context.Context {
	if RequestOf(ctx) == id {
		return ctx
	}
	return &requestContext{ctx, id}
}

// RequestOf returns the id that [WithRequest] has added; empty: none.
func RequestOf(ctx context.Context) string {
	if c, ok := ctx.Value(requestKey{}).(*requestContext); ok {
		return c.id
	}
	return ""
}

// Handler returns a handler that adds records to the log under a logger's name, whatever their level, and passes them on to
// another handler, which decides by itself what it writes. Either way secrets are replaced, as by [Redact].
//
// A sparing handler adds records at debug level only while somebody follows them, or the other handler takes them anyway. It is
// for places where making such records costs more than can be spent on each request.
func (l *Log) Handler(name string, next slog.Handler, sparing bool) slog.Handler {
	return &handler{log: l, name: name, next: next, sparing: sparing}
}

type handler struct {
	log     *Log
	name    string
	next    slog.Handler
	sparing bool
	fields  fields // those of WithAttrs
	group   string // the prefix of further fields' names
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.keeps(level) || h.next.Enabled(ctx, level)
}

func (h *handler) keeps(level slog.Level) bool {
	switch {
	case level >= slog.LevelInfo:
		return true
	case level < slog.LevelDebug:
		return false
	}
	return !h.sparing || h.log.attentive.Load() > 0
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	isPassed := h.next.Enabled(ctx, r.Level)
	all := h.fields.clone()
	r.Attrs(func(a slog.Attr) bool {
		all.add(h.group, a)
		return true
	})
	if id := RequestOf(ctx); id != "" && all.request == "" {
		a := slog.String(requestField, id)
		all.add("", a)
		r = r.Clone()
		r.AddAttrs(a)
	}
	if h.keeps(r.Level) || isPassed {
		h.log.Add(&Record{
			Time: r.Time, Level: r.Level, Logger: h.name, Message: clip(Redact(r.Message)), Fields: all.object(),
			Model: all.model, Instance: all.instance, Request: all.request,
		})
	}
	if !isPassed {
		return nil
	}
	return h.next.Handle(ctx, redactRecord(r))
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.fields = h.fields.clone()
	for _, a := range attrs {
		with.fields.add(h.group, a)
	}
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i], _ = redactAttr(a)
	}
	with.next = h.next.WithAttrs(clean)
	return &with
}

func (h *handler) WithGroup(name string) slog.Handler {
	with := *h
	if name != "" {
		with.group += name + "."
	}
	with.next = h.next.WithGroup(name)
	return &with
}

// Fields makes a record's fields of attributes, for loggers that aren't slog's.
func Fields(attrs ...slog.Attr) Record {
	var all fields
	for _, a := range attrs {
		all.add("", a)
	}
	return Record{Fields: all.object(), Model: all.model, Instance: all.instance, Request: all.request}
}

// fields are a record's, as the members of a JSON object.
type fields struct {
	members                  []byte
	model, instance, request string
}

func (f *fields) clone() fields {
	c := *f
	c.members = slices.Clone(f.members)
	return c
}

// maxText bounds a text in a record, in bytes. The stack of a panic is the longest that there is.
const maxText = 8 << 10

// add adds an attribute. One with the name of an earlier one stands beside it, as in other logs.
func (f *fields) add(group string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, in := range value.Group() {
			f.add(group, in)
		}
		return
	}
	if a.Key == "" {
		return
	}
	if len(f.members) > 0 {
		f.members = append(f.members, ',')
	}
	f.members = append(appendJSON(f.members, group+a.Key), ':')
	f.members = appendJSON(f.members, plain(value.Any()))
	if value.Kind() != slog.KindString || group != "" {
		return
	}
	switch a.Key {
	case "model":
		f.model = clip(value.String())
	case "instance":
		f.instance = clip(value.String())
	case requestField:
		f.request = clip(value.String())
	}
}

// object is the JSON object of the fields; nil: there are none.
func (f *fields) object() json.RawMessage {
	if len(f.members) == 0 {
		return nil
	}
	object := make([]byte, 0, len(f.members)+2)
	object = append(object, '{')
	object = append(object, f.members...)
	return append(object, '}')
}

func appendJSON(dst []byte, value any) []byte {
	encoded, _ := json.Marshal(value) // what plain returns can be encoded
	return append(dst, encoded...)
}

// plain returns a value as a record has it: a number, a truth value, a list or a text without secrets.
func plain(value any) any {
	switch v := value.(type) {
	case nil, bool, int64, uint64:
		return v
	case float64:
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v
		}
	case string:
		return clip(Redact(v))
	case time.Duration:
		switch long := v.Abs(); { // some digits are enough
		case long >= time.Second:
			v = v.Round(time.Millisecond)
		case long >= time.Millisecond:
			v = v.Round(time.Microsecond)
		}
		return v.String()
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case error:
		return plain(v.Error())
	case fmt.Stringer:
		return plain(v.String())
	case []string:
		list := make([]any, len(v))
		for i, text := range v {
			list[i] = plain(text)
		}
		return list
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = plain(slog.AnyValue(item).Any())
		}
		return list
	}
	return plain(fmt.Sprintf("%+v", value))
}

// clip cuts a text that is too long.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
