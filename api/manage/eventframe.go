package manage

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

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
	default:
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
