package node

import (
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// Event is something that has happened on the node. It has nothing of what was asked and answered.
type Event struct {
	Type string
	At   time.Time
	// Model is the key of the model that it is about, and FullKey that with the quantization, by which rights are checked. They are empty with
	// models.changed if any may have changed, and with downloads.
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

// changeEvents are the events of what happens to an instance.
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

// instanceChanged is called by the supervisor.
func (n *Node) instanceChanged(c supervisor.Change) {
	m := &c.Spec.Model
	if c.Spec.Remote == nil {
		n.cluster.touch()
	}
	crashed := c.Kind == supervisor.ChangeUnloaded && c.Reason == ""
	if c.Kind == supervisor.ChangeLoadFailed || crashed { // a GPU may have fallen off the bus, or its driver been updated
		n.lookAgain(c.Spec)
	}
	n.events.add(&Event{Type: changeEvents[c.Kind], Model: m.Key, FullKey: m.FullKey(), Change: &c}, changeEventSize+len(c.Why))
}

// mostModelsChanged is how many models are named at a time. If more have changed, one event is for all.
const mostModelsChanged = 32

// modelsChanged is called by the catalog.
func (n *Node) modelsChanged(models []catalog.Model) {
	n.cluster.touch()
	if len(models) > mostModelsChanged {
		n.events.add(&Event{Type: EventModelsChanged}, changeEventSize)
		return
	}
	for i := range models {
		n.events.add(&Event{Type: EventModelsChanged, Model: models[i].Key, FullKey: models[i].FullKey()}, changeEventSize)
	}
}

// downloadEvery is the least time between two events about the progress of a download.
const downloadEvery = 500 * time.Millisecond

// toldJob is what was last told of a download.
type toldJob struct {
	state fetch.State
	at    time.Time
}

// jobChanged is called by the downloads.
func (n *Node) jobChanged(j fetch.Job) {
	kind := ""
	switch j.State {
	case fetch.Paused:
		kind = EventDownloadPaused
	case fetch.Completed:
		kind = EventDownloadCompleted
	case fetch.Failed:
		kind = EventDownloadFailed
		if j.Kind == hub.Cancelled {
			kind = EventDownloadCancelled
		}
	default:
	}
	l := n.events
	l.mu.Lock()
	told, isTold := l.jobs[j.ID]
	if kind == "" {
		switch {
		case !isTold || told.state != fetch.Downloading:
			kind = EventDownloadStart
		case time.Since(told.at) >= downloadEvery:
			kind = EventDownloadProgress
		}
	}
	if kind != "" {
		l.jobs[j.ID] = toldJob{j.State, time.Now()}
	}
	if j.Ended() {
		delete(l.jobs, j.ID)
	}
	l.mu.Unlock()
	if kind != "" {
		l.add(&Event{Type: kind, Job: &j}, jobEventSize+64*len(j.Files)+len(j.Reason))
	}
}
