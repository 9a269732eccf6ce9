package caddymodule

import (
	"maps"
	"time"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// Report is the response to GET /lm/ps, which the command ps shows. All of it is from the same moment.
type Report struct {
	Time      time.Time          `json:"time"`
	Limits    ReportedLimits     `json:"limits"`
	Memory    int64              `json:"memory_bytes"` // of all instances, counted against the budget
	Instances []ReportedInstance `json:"instances"`    // in order of loading
	Coming    []ReportedComing   `json:"coming"`       // instances that will be restarted
	Failing   []ReportedFault    `json:"failing"`      // models that have failed and haven't worked since, sorted by key
	Waiting   map[string]int     `json:"waiting"`      // requests, by key of the model
}

// ReportedLimits are the limits in effect; 0: unlimited.
type ReportedLimits struct {
	Instances int   `json:"max_loaded"`
	Memory    int64 `json:"memory_budget_bytes"`
	Queue     int   `json:"queue"` // waiting requests for each model
}

// ReportedInstance is an instance. Fields that are unknown or don't apply are absent.
type ReportedInstance struct {
	ID       string            `json:"id"`
	Model    string            `json:"model"`
	Status   string            `json:"status"`            // starting, loading, ready, draining or stopping
	Reason   supervisor.Reason `json:"reason,omitempty"`  // why it is draining or stopping
	Renewing bool              `json:"renewing"`          // it will be restarted with other settings once it is idle
	Smaller  bool              `json:"smaller,omitempty"` // it has fewer slots or a smaller prompt cache, to make room for other models
	Pinned   bool              `json:"pinned"`
	Progress *float64          `json:"progress,omitempty"` // of loading, 0 to 1

	InUse         int    `json:"in_use"`
	Slots         int    `json:"slots"`
	ContextLength int    `json:"context_length"`
	DraftModel    string `json:"draft_model,omitempty"`
	Owner         string `json:"owner,omitempty"` // who loaded it: a token's id, or a user of another authentication
	Memory        int64  `json:"memory_bytes"`    // counted against the budget
	Resident      int64  `json:"resident_memory_bytes,omitempty"`

	LoadedAt    time.Time `json:"loaded_at,omitzero"`
	LoadSeconds float64   `json:"load_time_seconds,omitempty"`
	LastUsed    time.Time `json:"last_used,omitzero"` // when it was loaded, or the last request began or ended
	TTLSeconds  float64   `json:"ttl_seconds"`        // how long it may be idle; 0: unlimited
	Expires     time.Time `json:"expires_at,omitzero"`

	PID           int    `json:"pid,omitempty"`
	Address       string `json:"address,omitempty"` // where the engine listens: the path of its socket, or 127.0.0.1 and a port
	Sandbox       string `json:"sandbox,omitempty"` // what confines the engine; "off"; or "not available" and why
	Engine        string `json:"engine,omitempty"`
	EngineVersion string `json:"engine_version,omitempty"`
}

// ReportedComing is an instance that will be restarted.
type ReportedComing struct {
	ID    string    `json:"id"`
	Model string    `json:"model"`
	At    time.Time `json:"at"`               // not before
	Why   string    `json:"reason,omitempty"` // empty: other settings
}

// ReportedFault is a model that has failed.
type ReportedFault struct {
	Model string    `json:"model"`
	Count int       `json:"failures"` // in a row
	Until time.Time `json:"retry_at"` // not before; in the past: the next request tries again
	Why   string    `json:"reason"`   // of the last failure
}

func newReport(o supervisor.Overview, now time.Time) Report {
	r := Report{
		Time:      now,
		Limits:    ReportedLimits{o.Limits.Instances, o.Limits.Memory, o.Limits.Queue},
		Instances: []ReportedInstance{},
		Coming:    []ReportedComing{},
		Failing:   []ReportedFault{},
		Waiting:   map[string]int{},
	}
	for _, in := range o.Instances {
		r.Memory += in.Memory
		r.Instances = append(r.Instances, newReported(in))
	}
	for _, c := range o.Coming {
		r.Coming = append(r.Coming, ReportedComing{c.ID, c.Key, c.At, c.Why})
	}
	for _, f := range o.Failing {
		r.Failing = append(r.Failing, ReportedFault{f.Key, f.Count, f.Until, f.Why})
	}
	maps.Copy(r.Waiting, o.Waiting)
	return r
}

func newReported(in supervisor.Info) ReportedInstance {
	r := ReportedInstance{
		ID: in.ID, Model: in.Spec.Model.Key, Status: in.Status.String(), Reason: in.Leaving, Renewing: in.Renewing, Smaller: in.Smaller,
		Pinned: in.Spec.Pinned, InUse: in.InUse, Slots: in.Spec.Parallel, ContextLength: in.Spec.ContextLength,
		Memory: in.Memory, Resident: in.Resident, LoadedAt: in.LoadedAt, LoadSeconds: in.LoadTime.Seconds(),
		TTLSeconds: in.Spec.TTL.Seconds(), Expires: in.Expires, PID: in.PID, Address: in.Address, Sandbox: in.Sandbox,
		Engine: in.Build.Engine, EngineVersion: in.Build.Version,
	}
	r.Owner = node.OwnerOf(in)
	if in.Spec.Draft != nil {
		r.DraftModel = in.Spec.Draft.Key
	}
	if in.Status.IsLoading() {
		r.Progress = &in.Progress
	}
	if !in.LoadedAt.IsZero() {
		r.LastUsed = in.LastUsed
	}
	return r
}
