package manage

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/internal/resource"
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

// listLogs is GET /api/v1/logs: the newest records, oldest first, and with follow=true those that come as well, as events.
func listLogs(c *endpoint.Call) error {
	q, bad := parseLogQuery(c, c.Request.URL.Query())
	if bad != nil {
		return bad
	}
	if q.follow {
		return followLogs(c, q)
	}
	records := c.Site.Logs.Last(q.limit, q.filter)
	body := append(make([]byte, 0, 512*len(records)+64), `{"records":[`...)
	for i, r := range records {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendRecord(c, body, r)
	}
	c.WriteJSON(http.StatusOK, append(body, "]}"...))
	return nil
}

func parseLogQuery(c *endpoint.Call, query url.Values) (q logQuery, _ *translate.Error) {
	q = logQuery{limit: logLimit, filter: logs.Filter{Instance: query.Get("instance"), Request: query.Get("request")}}
	if model := query.Get("model"); model != "" {
		q.filter.Models = namesOf(c, model)
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
func followLogs(c *endpoint.Call, q logQuery) error {
	var from logs.Position
	if id := c.Request.Header.Get("Last-Event-ID"); id != "" {
		at, ok := c.Site.Logs.After(id)
		if !ok {
			return translate.Invalid("invalid_value", "Last-Event-ID", `The header Last-Event-ID must be the "id" of a record. Leave it out to begin with the newest.`)
		}
		from = at
	} else {
		from = c.Site.Logs.Before(q.limit, q.filter)
	}
	s := c.NewStream()
	defer s.Close()
	s.Send([]byte(endpoint.Comment)) // sends the header: the next record may be far away
	if c.Request.Method == http.MethodHead {
		return nil
	}
	reader := c.Site.Logs.Follow(from, q.filter)
	defer reader.Close()
	ctx, stop := endpoint.UntilExit(c)
	defer stop()
	var events []byte
	for {
		records, err := reader.Next(ctx)
		if err != nil {
			return c.Request.Context().Err() // nil if the server shuts down
		}
		for _, r := range records {
			events = append(append(events, "id: "+c.Site.Logs.ID(r)+"\nevent: log.record\ndata: "...), appendRecord(c, nil, r)...)
			if events = append(events, "\n\n"...); len(events) >= logPiece {
				s.Send(events)
				events = events[:0]
			}
		}
		s.Send(events)
		events = events[:0]
		select {
		case <-time.After(logPause):
		case <-ctx.Done():
		}
	}
}

// appendRecord appends the JSON of a record, as [resource.LogRecord] has it.
func appendRecord(c *endpoint.Call, dst []byte, r *logs.Record) []byte {
	dst = jsonbody.AppendString(append(dst, `{"id":`...), c.Site.Logs.ID(r))
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
