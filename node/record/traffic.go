package record

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/lmcaddy/lmcaddy/internal/histogram"
	"github.com/lmcaddy/lmcaddy/translate"
)

// TrafficCounter counts the requests that have ended, for the metrics.
type TrafficCounter struct {
	mu       sync.Mutex
	requests map[RequestKey]uint64
	models   map[string]*ModelTraffic
	errors   map[ErrorKey]uint64
}

// RequestKey is what requests to models are counted by: few words each. The model is a key of the catalog, or empty if none is named.
type RequestKey struct{ Model, Dialect, Outcome string }

// ErrorKey is what errors are counted by.
type ErrorKey struct{ Dialect, Kind string }

// unavailable are the kinds of errors that have the code of their cause in place of a word of their own.
var unavailable = []string{
	"model_load_failed", "model_too_large", "remote_loop", "remote_model_missing", "remote_unavailable", "remote_unreachable",
	"server_busy", "shutting_down", "store_busy", "store_unavailable", "too_many_open_files",
}

// ErrorKinds returns all kinds of errors.
func ErrorKinds() []string {
	all := slices.Concat(translate.Words(), unavailable)
	slices.Sort(all)
	return slices.Compact(all)
}

// UsualOutcomes returns the outcomes that don't depend on what is asked: answers, cancelled requests, and the server's faults.
func UsualOutcomes() []string {
	faults := []string{OutcomeOK, OutcomeCancelled}
	for _, k := range []translate.Kind{
		translate.KindInternal, translate.KindEngineFailed, translate.KindStalled, translate.KindQueueFull, translate.KindDiskFull,
	} {
		faults = append(faults, k.Word())
	}
	return slices.Concat(faults, unavailable)
}

// ModelTraffic has the figures of the requests to a model.
type ModelTraffic struct {
	PromptTokens, CachedTokens, GeneratedTokens uint64 // the second is a part of the first

	Duration   histogram.Histogram // of requests with an answer
	FirstToken histogram.Histogram // from arrival
	PerToken   histogram.Histogram // the time of each token after the first
	Queue      histogram.Histogram // the wait for others
}

// Traffic is what was counted since the server was opened.
type Traffic struct {
	Requests map[RequestKey]uint64
	Models   map[string]ModelTraffic
	Errors   map[ErrorKey]uint64
}

// NewTrafficCounter returns a counter that has counted nothing yet.
func NewTrafficCounter() *TrafficCounter {
	return &TrafficCounter{requests: map[RequestKey]uint64{}, models: map[string]*ModelTraffic{}, errors: map[ErrorKey]uint64{}}
}

// Observe counts a request that has ended. toModel says that it asked a model, or tried to.
func (t *TrafficCounter) Observe(s *Summary, toModel bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.Outcome != OutcomeOK && s.Outcome != OutcomeCancelled {
		t.errors[ErrorKey{s.Dialect, s.Outcome}]++
	}
	if !toModel {
		return
	}
	t.requests[RequestKey{s.Model, s.Dialect, s.Outcome}]++
	if s.Model != "" {
		m := t.models[s.Model]
		if m == nil {
			m = new(noTraffic())
			t.models[s.Model] = m
		}
		m.PromptTokens += uint64(max(0, s.Usage.Prompt))
		m.CachedTokens += uint64(max(0, s.Usage.Cached))
		m.GeneratedTokens += uint64(max(0, s.Usage.Completion))
		if s.Instance == "" {
			return // it got no slot
		}
		m.Queue.ObserveTime(s.Queue)
		if s.Outcome == OutcomeOK {
			m.Duration.ObserveTime(s.Duration)
		}
		if s.FirstToken > 0 {
			m.FirstToken.ObserveTime(s.FirstToken)
		}
		if s.PerToken > 0 {
			m.PerToken.ObserveTime(s.PerToken)
		}
	}
}

func noTraffic() ModelTraffic {
	return ModelTraffic{
		Duration: histogram.New(histogram.Waits), FirstToken: histogram.New(histogram.Waits),
		PerToken: histogram.New(histogram.Tokens), Queue: histogram.New(histogram.Waits),
	}
}

// Preset adds what may yet happen in some dialects, with no event so far: each kind of error, and for each model in use, among which are
// those given, its figures and the usual outcomes. Without that, the first event of a series is lost: it isn't a growth.
func (t *Traffic) Preset(dialects []string, models iter.Seq[string]) {
	for model := range models {
		if _, ok := t.Models[model]; !ok {
			t.Models[model] = noTraffic()
		}
	}
	kinds, outcomes := ErrorKinds(), UsualOutcomes()
	for _, dialect := range dialects {
		for _, kind := range kinds {
			t.Errors[ErrorKey{dialect, kind}] += 0
		}
		for model := range t.Models {
			for _, outcome := range outcomes {
				t.Requests[RequestKey{model, dialect, outcome}] += 0
			}
		}
	}
}

// Snapshot returns a copy of what was counted.
func (t *TrafficCounter) Snapshot() Traffic {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := Traffic{maps.Clone(t.requests), make(map[string]ModelTraffic, len(t.models)), maps.Clone(t.errors)}
	for key, m := range t.models {
		c := *m
		c.Duration, c.FirstToken, c.PerToken, c.Queue = m.Duration.Clone(), m.FirstToken.Clone(), m.PerToken.Clone(), m.Queue.Clone()
		all.Models[key] = c
	}
	return all
}
