package fakekit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Kind is the kind of an [Event].
type Kind string

// The kinds, with the fields that they fill in beside Time, Kind and PID.
const (
	Probe     Kind = "probe"     // --version or --help was asked: Argv
	Started   Kind = "started"   // the port is bound or refused, the load is to begin: Argv, Start, Parent, Env, EnvNames, Port, Dir
	Forked    Kind = "forked"    // a grandchild runs: PID is its own, Parent the process that forked it
	Ready     Kind = "ready"     // loaded: Port
	Request   Kind = "request"   // a request has arrived whole: N, Method, Path, Header, Body
	Rendered  Kind = "rendered"  // likewise a request for the prompt that a template makes of a chat, which every load may begin with
	Queued    Kind = "queued"    // a generating request waits for a slot and has its place in the queue: N
	Serving   Kind = "serving"   // a generating request has its slot: N, Slot
	Gated     Kind = "gated"     // waits for a gate: N (0: the load), Gate
	Frozen    Kind = "frozen"    // a request in flight gets nothing more, since the process was asked to end: N
	Hung      Kind = "hung"      // a request is sent nothing more, by its cue: N
	Stuck     Kind = "stuck"     // no request gets any further: N where a request caused it, Reason
	Cancelled Kind = "cancelled" // the client of a request was seen to go away: N
	Finished  Kind = "finished"  // a request is answered: N, Code (status), Reason where it didn't end well
	Asked     Kind = "asked"     // a request to end came: Reason is SIGTERM, SIGINT, exit or EOF
	Acted     Kind = "acted"     // an action on a slot is answered: Slot, Reason (the action), Code (status)
	Exit      Kind = "exit"      // the process ends of itself: Reason, Code, Signal
)

// Event is a line of the journal.
type Event struct {
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// PID is the process that recorded it.
	PID int `json:"pid"`
	// N counts a process's admitted generating requests, from 1. It is 0 for other requests and for refused ones.
	N int `json:"n,omitempty"`

	// Start counts the program's starts, from 1.
	Start  int      `json:"start,omitempty"`
	Parent int      `json:"parent,omitempty"`
	Argv   []string `json:"argv,omitempty"`
	// Env holds the variables that concern the program, EnvNames the names of all.
	Env      map[string]string `json:"env,omitempty"`
	EnvNames []string          `json:"env_names,omitempty"`
	// Port is the bound one, also for --port 0.
	Port int `json:"port,omitempty"`
	// Dir is the working directory.
	Dir string `json:"dir,omitempty"`

	Method string      `json:"method,omitempty"`
	Path   string      `json:"path,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Body   string      `json:"body,omitempty"`

	Slot   int    `json:"slot,omitempty"`
	Gate   string `json:"gate,omitempty"`
	Reason string `json:"reason,omitempty"`
	Code   int    `json:"code,omitempty"`
	Signal int    `json:"signal,omitempty"`
}

func (e Event) String() string {
	e.Env, e.EnvNames, e.Header = nil, nil, nil
	if len(e.Body) > 200 {
		e.Body = e.Body[:200] + "…"
	}
	text, err := json.Marshal(e)
	if err != nil {
		return string(e.Kind)
	}
	return string(text)
}

// Is matches the events of one kind.
func Is(k Kind) func(Event) bool { return func(e Event) bool { return e.Kind == k } }

// Of matches the events of one kind from one process.
func Of(pid int, k Kind) func(Event) bool {
	return func(e Event) bool { return e.PID == pid && e.Kind == k }
}

// At matches a child that waits for a gate.
func At(gate string) func(Event) bool {
	return func(e Event) bool { return e.Kind == Gated && e.Gate == gate }
}

// journal is a child's end of the journal: each event is one append, so that the lines of several processes don't mix.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

// openJournal begins with an empty line: a process that was killed may have left half of one.
func openJournal(dir string) (*journal, error) {
	f, err := os.OpenFile(filepath.Join(dir, journalFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	if _, err := f.WriteString("\n"); err != nil {
		return nil, fmt.Errorf("writing the journal: %w", err)
	}
	return &journal{file: f}, nil
}

func (j *journal) tell(e Event) {
	e.Time = time.Now()
	if e.PID == 0 {
		e.PID = os.Getpid()
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("fakekit: encoding an event: %v", err))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	// An error means that the test is over and its folder gone.
	_, _ = j.file.Write(append(line, '\n'))
}

// reading is a test's end of the journal: it parses only what is new.
type reading struct {
	path   string
	mu     sync.Mutex
	offset int64
	rest   []byte
	events []Event
}

// all returns the events so far, in order. The slice is only ever appended to.
func (r *reading) all() ([]Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := os.Open(r.path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	defer f.Close()
	var fresh bytes.Buffer
	if _, err := f.Seek(r.offset, 0); err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	n, err := fresh.ReadFrom(f)
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	r.offset += n
	r.rest = append(r.rest, fresh.Bytes()...)
	for {
		line, rest, whole := bytes.Cut(r.rest, []byte("\n"))
		if !whole {
			return slices.Clip(r.events), nil
		}
		r.rest = rest
		var e Event
		if json.Unmarshal(line, &e) == nil {
			r.events = append(r.events, e)
		}
	}
}
