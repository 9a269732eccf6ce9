package manage

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

const logEvent = "log.record" // the type of the events that are records of the log. They are sent only to those who ask for them.

type eventFollower struct {
	call  *endpoint.Call
	types map[string]bool
	log   *record.Events
	at    uint64 // the position of the next event

	records *logs.Reader // nil: no records are followed

	sees   eventRights
	frames []byte
	took   bool // something was taken in this round, whether or not the client may see it
}

// events is GET /api/v1/events: what happens on the server, as events, until the client disconnects or the server shuts down.
func events(c *endpoint.Call) error {
	recognizeAdmin(c)
	f := &eventFollower{call: c, log: c.Node.Record.Events}
	f.sees = eventRights{everything: c.IsAdmin(), requests: c.Identity.May(access.ScopeInference)}
	query := parametersOf(c)
	level := query.level(slog.LevelInfo)
	if query.err != nil {
		return query.err
	}
	if bad := f.wants(query.Get("types")); bad != nil {
		return bad
	}
	position, records, isOurs, bad := f.position()
	if bad != nil {
		return bad
	}
	// The stream ends when the rights of its token change.
	ctx, running := c.Node.Access.Running.FollowRights(c.Request.Context(), c.Identity, access.ScopeModelsRead)
	if running != nil {
		c.Request = c.Request.WithContext(ctx)
		c.Ends = append(c.Ends, running.End)
	}
	s := c.NewStream()
	defer s.Close()
	if c.Request.Method == http.MethodHead {
		s.Send([]byte(endpoint.Comment)) // sends the header
		return nil
	}
	if f.types[logEvent] {
		from, ok := c.Site.Logs.After(records)
		if !ok {
			from = c.Site.Logs.Before(0, logs.Filter{})
		}
		f.records = c.Site.Logs.Follow(from, logs.Filter{Level: level})
		defer f.records.Close()
	}
	resumed := isOurs && c.Request.Header.Get("Last-Event-ID") != ""
	if f.at = position; !resumed {
		f.at = f.log.Next()
	}
	now := time.Now()
	f.frame(f.at, resource.EventsStart{Event: eventOf("events.start", now), Resumed: resumed})
	if !isOurs {
		f.frame(f.at, eventsMissed(now, nil))
	}
	f.flush(0)
	return f.follow()
}

// position returns what the header Last-Event-ID names. isOurs is false if an earlier process has named it.
func (f *eventFollower) position() (position uint64, records string, isOurs bool, _ *translate.Error) {
	id := f.call.Request.Header.Get("Last-Event-ID")
	if id == "" {
		return 0, "", true, nil
	}
	id, records, _ = strings.Cut(id, ".")
	position, isOurs, ok := f.log.Position(id)
	if !ok {
		return 0, "", false, translate.Invalid("invalid_value", "Last-Event-ID",
			`The header Last-Event-ID must be the "id" of an event. Leave it out to begin now.`)
	}
	if !isOurs {
		records = ""
	}
	return position, records, isOurs, nil
}

const eventPortion = 64 // how many events are taken at a time: until they are sent, they are kept for the client

// follow sends events until the client disconnects or the server shuts down.
func (f *eventFollower) follow() error {
	ctx, stop := endpoint.UntilExit(f.call)
	defer stop()
	for {
		changed := f.log.Changed()
		var logged, debugged <-chan struct{}
		if f.records != nil {
			logged, debugged = f.records.Changed()
		}
		for f.took = false; ctx.Err() == nil && f.portion(); {
			f.flush(logPiece)
		}
		f.flush(0)
		if ctx.Err() == nil && !f.took {
			select {
			case <-changed:
			case <-logged:
			case <-debugged:
			case <-ctx.Done():
			}
			continue
		}
		select {
		case <-time.After(logPause):
		case <-ctx.Done():
			return f.call.Request.Context().Err() // nil if the server shuts down
		}
	}
}

// portion makes frames of the next events and records. It reports whether there may be more.
func (f *eventFollower) portion() (isMore bool) {
	events, next, lost := f.log.From(f.at, eventPortion)
	if lost > 0 {
		number := &lost
		if !f.sees.everything { // it would tell what others do
			number = nil
		}
		f.frame(next-uint64(len(events)), eventsMissed(time.Now(), number))
	}
	f.at = next - uint64(len(events))
	for _, e := range events {
		f.at++
		if f.types[e.Type] {
			if described := f.describe(e); described != nil {
				f.frame(f.at, described)
			}
		}
	}
	var records []*logs.Record
	if f.records != nil {
		records = f.records.Some()
		for _, r := range records {
			f.frame(f.at, resource.LogEvent{Event: eventOf(logEvent, r.Time), Record: appendRecord(f.call, nil, r)})
		}
	}
	f.took = f.took || len(events) > 0 || len(records) > 0
	return len(events) == eventPortion || len(records) >= eventPortion
}

func (f *eventFollower) flush(most int) {
	if len(f.frames) > most {
		f.call.Stream.Send(f.frames)
		f.frames = f.frames[:0]
	}
}

// wants adds the types of events that match one of a list of patterns; empty: all but records. What the identity may not see is left out; a
// type that is named exactly, and never seen, is an error.
func (f *eventFollower) wants(patterns string) *translate.Error {
	f.types = map[string]bool{}
	all := append(slices.Clone(record.EventTypes), logEvent)
	if patterns == "" {
		patterns = strings.Join(record.EventTypes, "*,") + "*"
	}
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern = strings.TrimSpace(pattern)
		prefix, isOpen := strings.CutSuffix(pattern, "*")
		matched := false
		for _, t := range all {
			if t != pattern && (!isOpen || !strings.HasPrefix(t, prefix)) {
				continue
			}
			matched = true
			var lacks access.Scope // without which the type is never seen
			switch {
			case t == logEvent && !f.sees.everything:
				lacks = access.ScopeAdmin
			case strings.HasPrefix(t, "request.") && !f.sees.requests:
				lacks = access.ScopeInference
			}
			f.types[t] = f.types[t] || lacks == ""
			if lacks != "" && !isOpen {
				return translate.NewError(translate.KindForbidden, "missing_scope", "types",
					"Events of the type "+t+" need the scope "+string(lacks)+".")
			}
		}
		if !matched {
			return translate.Invalid("invalid_value", "types", endpoint.Quoted(pattern)+` is no type of event. "types" is a list of types `+
				`with commas, in which a type may end in *. There are: `+strings.Join(all, ", ")+".")
		}
	}
	return nil
}

type eventRights struct {
	everything bool // everybody's requests, the log, and this machine's folders
	requests   bool // its own
}

// typedEvent is what is sent: a type of package resource.
type typedEvent interface{ Kind() string }

func eventOf(kind string, at time.Time) resource.Event {
	return resource.Event{Type: kind, Time: resource.At(at)}
}

func eventsMissed(at time.Time, number *uint64) typedEvent {
	return resource.EventsMissed{Event: eventOf("events.missed", at), Number: number}
}

// describe returns an event as the client sees it, or nil if it may not.
func (f *eventFollower) describe(e *record.Event) typedEvent {
	c, of := f.call, eventOf(e.Type, e.At)
	switch {
	case e.Request != nil:
		if !f.sees.requests || !seesRequest(c, e.Request) {
			return nil
		}
		request := describeRequest(e.Request)
		request.Inspected = e.Request.Inspected && f.sees.everything
		return resource.RequestEvent{Event: of, Request: request}
	case e.Job != nil:
		if !endpoint.MaySeeJob(c, *e.Job) {
			return nil
		}
		return struct {
			resource.Event

			Job downloadJob `json:"job"`
		}{of, describeJob(c, *e.Job)}
	case e.FullKey != "" && !c.Identity.MayUse(e.FullKey):
		return nil
	case e.Type == record.EventModelsChanged:
		return resource.ModelsChanged{Event: of, Model: e.Model}
	default:
		return f.describeChange(of, e)
	}
}

func (f *eventFollower) describeChange(of resource.Event, e *record.Event) typedEvent {
	change := e.Change
	if strings.HasPrefix(e.Type, "model_unload.") {
		reason := cmp.Or(string(change.Reason), "crashed") // nobody wanted it
		return resource.ModelUnloadEvent{Event: of, Model: e.Model, Instance: change.Instance, Reason: reason}
	}
	load := resource.ModelLoadEvent{
		Event: of, Model: e.Model, Instance: change.Instance, Seconds: change.LoadTime.Seconds(), Placement: change.Placed,
	}
	switch change.Kind {
	case supervisor.ChangeProgress:
		load.Progress = &change.Progress
	case supervisor.ChangeLoadFailed:
		why := change.Why
		if !f.sees.everything {
			why = f.call.Node.HidePaths(why)
		}
		message := endpoint.Presentable(why, endpoint.MaxMessage)
		load.Error = native.AppendErrorObject(nil, translate.NewError(translate.KindUnavailable, "model_load_failed", "", message))
	}
	return load
}

// frame adds an event with the id of the position after it.
func (f *eventFollower) frame(after uint64, event typedEvent) {
	data, err := json.Marshal(event)
	if err != nil {
		f.call.Site.Log.Error("an event can't be encoded", "type", event.Kind(), "error", err)
		return
	}
	f.frames = append(append(f.frames, "id: "...), f.log.ID(after)...)
	if f.records != nil {
		f.frames = append(append(f.frames, '.'), f.records.At()...)
	}
	f.frames = append(append(append(f.frames, "\nevent: "...), event.Kind()...), "\ndata: "...)
	f.frames = append(append(f.frames, data...), "\n\n"...)
}
