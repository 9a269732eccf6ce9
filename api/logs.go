package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

const (
	logLimit     = 100 // records if the request doesn't say
	mostLogLimit = 10_000
)

// logQuery is what a request for the log asks for.
type logQuery struct {
	filter logs.Filter
	limit  int
	follow bool
}

// logs is GET /api/v1/logs: the newest records, oldest first, and with follow=true those that come as well, as events.
func (c *call) logs() error {
	q, bad := c.logQuery(c.r.URL.Query())
	if bad != nil {
		return bad
	}
	if q.follow {
		return c.followLogs(q)
	}
	records := c.site.Logs.Last(q.limit, q.filter)
	body := append(make([]byte, 0, 512*len(records)+64), `{"records":[`...)
	for i, r := range records {
		if i > 0 {
			body = append(body, ',')
		}
		body = c.appendRecord(body, r)
	}
	c.writeJSON(http.StatusOK, append(body, "]}"...))
	return nil
}

func (c *call) logQuery(query url.Values) (q logQuery, _ *translate.Error) {
	q = logQuery{limit: logLimit, filter: logs.Filter{Instance: query.Get("instance"), Request: query.Get("request")}}
	if model := query.Get("model"); model != "" {
		q.filter.Models = c.namesOf(model)
	}
	if given := query.Get("limit"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 0 || n > mostLogLimit {
			return q, translate.Invalid("invalid_value", "limit", fmt.Sprintf(`"limit" must be a number of records from 0 to %d.`, mostLogLimit))
		}
		q.limit = n
	}
	if given := query.Get("level"); given != "" {
		level, ok := logLevels[strings.ToLower(given)]
		if !ok {
			return q, translate.Invalid("invalid_value", "level", `"level" must be "debug", "info", "warn" or "error".`)
		}
		q.filter.Level = level
	}
	if given := query.Get("since"); given != "" {
		at, err := time.Parse(time.RFC3339Nano, given)
		if err != nil {
			return q, translate.Invalid("invalid_value", "since", `"since" must be a time such as 2026-01-31T12:00:00Z.`)
		}
		q.filter.Since = at
	}
	for name, to := range map[string]*bool{"follow": &q.follow, "engine": &q.filter.Output} {
		if given := query.Get(name); given != "" {
			on, err := strconv.ParseBool(given)
			if err != nil {
				return q, translate.Invalid("invalid_value", name, `"`+name+`" must be true or false.`)
			}
			*to = on
		}
	}
	return q, nil
}

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// logPause is the least time between two sendings of events to a follower. An engine writes its lines in bursts, and many may follow: each line
// by itself would cost the server more than the request that it is about.
const logPause = 200 * time.Millisecond

// logPiece is how many bytes of events are sent at a time, at least. A client that stops reading holds no more than that.
const logPiece = 32 << 10

// followLogs sends an event for each record, until the client disconnects or the server shuts down. With Last-Event-ID, it
// begins after that record.
func (c *call) followLogs(q logQuery) error {
	var from logs.Position
	if id := c.r.Header.Get("Last-Event-ID"); id != "" {
		at, ok := c.site.Logs.After(id)
		if !ok {
			return translate.Invalid("invalid_value", "Last-Event-ID", `The header Last-Event-ID must be the "id" of a record. Leave it out to begin with the newest.`)
		}
		from = at
	} else {
		from = c.site.Logs.Before(q.limit, q.filter)
	}
	s := c.newStream()
	defer s.close()
	s.send([]byte(comment)) // sends the header: the next record may be far away
	if c.r.Method == http.MethodHead {
		return nil
	}
	reader := c.site.Logs.Follow(from, q.filter)
	defer reader.Close()
	ctx, stop := c.untilExit()
	defer stop()
	var events []byte
	for {
		records, err := reader.Next(ctx)
		if err != nil {
			return c.r.Context().Err() // nil if the server shuts down
		}
		for _, r := range records {
			events = append(append(events, "id: "+c.site.Logs.ID(r)+"\nevent: log.record\ndata: "...), c.appendRecord(nil, r)...)
			if events = append(events, "\n\n"...); len(events) >= logPiece {
				s.send(events)
				events = events[:0]
			}
		}
		s.send(events)
		events = events[:0]
		select {
		case <-time.After(logPause):
		case <-ctx.Done():
		}
	}
}

// untilExit returns the request's context, which also ends when the server begins to shut down.
func (c *call) untilExit() (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(c.r.Context())
	go func() {
		select {
		case <-c.site.Exiting:
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

// logEnd keeps what is known of a request to a model among the records at debug level, where it is found by the request's id. It
// isn't logged elsewhere: access logs are for that. It returns the copy of the summary that it keeps.
func (c *call) logEnd(s *node.Summary) *node.Summary {
	kept := &struct { // one allocation
		record logs.Record
		ended  endedRequest
	}{ended: endedRequest(*s)} // a copy, since the summary is a part of the call, with all that it refers to
	kept.record = logs.Record{
		Time: time.Now(), Level: slog.LevelDebug, Logger: "lm", Message: "a request ended", Source: &kept.ended,
		Model: s.Model, Instance: s.Instance, Request: s.ID,
	}
	c.site.Logs.Add(&kept.record)
	return (*node.Summary)(&kept.ended)
}

// endedRequest has the fields of the record of a request's end. Most of these records are never read, so only reading one encodes it.
type endedRequest node.Summary

// Attrs returns the fields that have a value.
func (s *endedRequest) Attrs() []slog.Attr {
	attrs := []slog.Attr{
		slog.String("request", s.ID), slog.String("model", s.Model), slog.String("instance", s.Instance), slog.String("token", s.Token),
		slog.String("path", s.Path), slog.Int("status", s.Status), slog.String("outcome", s.Outcome), slog.Duration("duration", s.Duration),
		slog.Duration("queue", s.Queue), slog.Duration("load", s.Load), slog.Duration("restore", s.Restore), slog.Duration("first_token", s.FirstToken),
		slog.Int("input_tokens", s.Usage.Prompt), slog.Int("cached_tokens", s.Usage.Cached), slog.Int("output_tokens", s.Usage.Completion),
		slog.Int("tool_calls", s.Tools),
	}
	return slices.DeleteFunc(attrs, func(a slog.Attr) bool {
		return a.Value.Equal(slog.StringValue("")) || a.Value.Equal(slog.IntValue(0)) || a.Value.Equal(slog.DurationValue(0))
	})
}

// appendRecord appends the JSON of a record, as [resource.LogRecord] has it.
func (c *call) appendRecord(dst []byte, r *logs.Record) []byte {
	dst = jsonbody.AppendString(append(dst, `{"id":`...), c.site.Logs.ID(r))
	dst = r.Time.UTC().AppendFormat(append(dst, `,"time":`...), resource.TimeFormat)
	dst = append(append(append(dst, `,"level":"`...), strings.ToLower(r.Level.String())...), '"')
	dst = jsonbody.AppendString(append(dst, `,"logger":`...), r.Logger)
	dst = jsonbody.AppendString(append(dst, `,"message":`...), r.Message)
	fields := r.Object()
	if fields == nil {
		fields = json.RawMessage("{}")
	}
	return append(append(append(dst, `,"fields":`...), fields...), '}')
}
