package record

import (
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/ring"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// The bounds of the events that are kept for those that follow them.
const (
	mostEvents     = 8192
	mostEventBytes = 4 << 20
)

// Events is a ring of the newest events. A reader has a position in it, so a slow reader delays nobody.
type Events struct {
	*ring.Ring[*Event]
	boot string // tells the positions of this process from those of an earlier one

	mu   sync.Mutex
	jobs map[string]jobEvent // by id; those that have not ended
}

// NewEvents returns an empty log of events.
func NewEvents() *Events {
	return &Events{Ring: ring.New[*Event](mostEvents, mostEventBytes), boot: strings.ToLower(rand.Text()[:8]), jobs: map[string]jobEvent{}}
}

func (l *Events) add(e *Event, size int) {
	e.At = time.Now()
	l.Add(e, size)
}

// ID returns an id for a position.
func (l *Events) ID(position uint64) string { return l.boot + "-" + strconv.FormatUint(position, 10) }

// Position returns the position with an id. isOurs is false if an earlier process gave the id. ok is false for a text that is no id.
func (l *Events) Position(id string) (position uint64, isOurs, ok bool) {
	boot, number, _ := strings.Cut(id, "-")
	position, err := strconv.ParseUint(number, 10, 64)
	return position, boot == l.boot, err == nil && len(boot) == len(l.boot)
}

// Event is something that has happened on the server. It has nothing of what was asked and answered.
type Event struct {
	Type string
	At   time.Time
	// Model is the key of the model that it is about, and FullKey that with the quantization, by which rights are checked. They are empty
	// with models.changed if any may have changed, and with downloads.
	Model, FullKey string

	Change  *supervisor.Change // of an instance
	Job     *fetch.Job         // of a download
	Request *Summary           // of a request to a model; it must not be changed
}

// The types of events.
const (
	EventLoadStart         = "model_load.start"
	EventLoadProgress      = "model_load.progress"
	EventLoadEnd           = "model_load.end"
	EventLoadFailed        = "model_load.failed"
	EventUnloadStart       = "model_unload.start"
	EventUnloadEnd         = "model_unload.end"
	EventModelsChanged     = "models.changed"
	EventDownloadStart     = "download.start"
	EventDownloadProgress  = "download.progress"
	EventDownloadPaused    = "download.paused"
	EventDownloadCompleted = "download.completed"
	EventDownloadFailed    = "download.failed"
	EventDownloadCancelled = "download.cancelled"
	EventRequestStart      = "request.start"
	EventRequestEnd        = "request.end"
)

// EventTypes lists all types of events.
var EventTypes = []string{
	EventLoadStart, EventLoadProgress, EventLoadEnd, EventLoadFailed, EventUnloadStart, EventUnloadEnd, EventModelsChanged,
	EventDownloadStart, EventDownloadProgress, EventDownloadPaused, EventDownloadCompleted, EventDownloadFailed, EventDownloadCancelled,
	EventRequestStart, EventRequestEnd,
}

var changeEvents = map[supervisor.ChangeKind]string{
	supervisor.ChangeLoadBegun: EventLoadStart, supervisor.ChangeProgress: EventLoadProgress, supervisor.ChangeLoaded: EventLoadEnd,
	supervisor.ChangeLoadFailed: EventLoadFailed, supervisor.ChangeUnloadBegun: EventUnloadStart, supervisor.ChangeUnloaded: EventUnloadEnd,
	supervisor.ChangeSettings: EventModelsChanged,
}

// About how much memory events take, in bytes.
const (
	changeEventSize = 300
	jobEventSize    = 800
)

// InstanceChanged adds the event of a change of an instance.
func (l *Events) InstanceChanged(c supervisor.Change) {
	m := &c.Spec.Model
	l.add(&Event{Type: changeEvents[c.Kind], Model: m.Key, FullKey: m.FullKey(), Change: &c}, changeEventSize+len(c.Why))
}

const mostModelsChanged = 32 // how many models are named at a time. If more have changed, one event is for all.

// ModelsChanged adds the events of models that have changed, or that any model may have if none is given.
func (l *Events) ModelsChanged(models ...catalog.Model) {
	if len(models) == 0 || len(models) > mostModelsChanged {
		l.add(&Event{Type: EventModelsChanged}, changeEventSize)
		return
	}
	for i := range models {
		l.add(&Event{Type: EventModelsChanged, Model: models[i].Key, FullKey: models[i].FullKey()}, changeEventSize)
	}
}

const progressEvery = 500 * time.Millisecond // the least time between two events about the progress of a download

type jobEvent struct {
	state fetch.State
	at    time.Time
}

// JobChanged adds the event of a change of a download, unless it is about its progress and follows another too soon.
func (l *Events) JobChanged(j fetch.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var kind string
	switch last, hasLast := l.jobs[j.ID]; {
	case j.State == fetch.Paused:
		kind = EventDownloadPaused
	case j.State == fetch.Completed:
		kind = EventDownloadCompleted
	case j.State == fetch.Failed && j.Kind == hub.Cancelled:
		kind = EventDownloadCancelled
	case j.State == fetch.Failed:
		kind = EventDownloadFailed
	case !hasLast || last.state != fetch.Downloading:
		kind = EventDownloadStart
	case time.Since(last.at) >= progressEvery:
		kind = EventDownloadProgress
	default:
		return
	}
	l.jobs[j.ID] = jobEvent{j.State, time.Now()}
	if j.Ended() {
		delete(l.jobs, j.ID)
	}
	l.add(&Event{Type: kind, Job: &j}, jobEventSize+64*len(j.Files)+len(j.Reason))
}
