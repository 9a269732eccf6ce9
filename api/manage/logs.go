package manage

import (
	"encoding/json"
	"net/http"
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

type logQuery struct {
	filter logs.Filter
	limit  int
	follow bool
}

// listLogs is GET /api/v1/logs: the newest records, oldest first, and with follow=true those that come as well, as events.
func listLogs(c *endpoint.Call) error {
	query := parametersOf(c)
	q := logQuery{limit: query.limit(0, mostLogLimit, logLimit), follow: query.bool("follow", false), filter: logs.Filter{
		Instance: query.Get("instance"), Request: query.Get("request"), Level: query.level(0), Since: query.time("since"),
		Output: query.bool("engine", false),
	}}
	if model := query.Get("model"); model != "" {
		q.filter.Models = namesOf(c, model)
	}
	if query.err != nil {
		return query.err
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

// logPause is the least time between two sendings to a follower: each line of a burst by itself would cost more than its request.
const logPause = 200 * time.Millisecond

const logPiece = 32 << 10 // how many bytes of events are sent at a time, at least. A client that stops reading holds no more than that.

// followLogs sends an event for each record, after the one of Last-Event-ID, until the client disconnects or the server shuts down.
func followLogs(c *endpoint.Call, q logQuery) error {
	var from logs.Position
	if id := c.Request.Header.Get("Last-Event-ID"); id != "" {
		at, ok := c.Site.Logs.After(id)
		if !ok {
			return translate.Invalid("invalid_value", "Last-Event-ID",
				`The header Last-Event-ID must be the "id" of a record. Leave it out to begin with the newest.`)
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
