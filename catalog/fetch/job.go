package fetch

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// State is how a download is getting on. The words are the native v1 API's.
type State string

// The states: downloading ⇄ paused, downloading → completed, downloading → failed → downloading.
const (
	Downloading State = "downloading"
	Paused      State = "paused"
	Completed   State = "completed"
	Failed      State = "failed"
	// AlreadyDownloaded is what Start says of a model that is there; no job has it.
	AlreadyDownloaded State = "already_downloaded"
)

// Job is a download at one moment.
type Job struct {
	ID    string // "job_" and 10 hex digits; empty when the state is AlreadyDownloaded
	State State
	// Reason says of a failed job what went wrong and what to do next, and of one that is being tried again why; else empty.
	Reason string
	Kind   Kind // of what made it fail; 0 for a job that hasn't

	Model        string   // as it was asked for
	Owner        string   // who asked first; empty: nobody in particular
	Repo         string   // publisher/repository on the hub
	Quantization string   // of the files that were chosen; empty where their names don't tell
	Dir          string   // where the files go; absolute
	Folder       string   // the same below the models folder, as publisher/name: the model gets its key from it
	Files        []string // below the models folder, with slashes; the last makes a model of them

	TotalBytes      int64
	DownloadedBytes int64 // on the disk; checked when the job is completed
	StartedAt       time.Time
	CompletedAt     time.Time // zero unless completed

	// While downloading:
	BytesPerSecond      float64   // over the last seconds
	EstimatedCompletion time.Time // zero while nothing comes
}

// Ended tells whether the job does nothing more unless it is asked to.
func (j Job) Ended() bool { return j.State == Completed || j.State == Failed }

// file is a file of a job.
type file struct {
	remoteFile
	Local string `json:"local"` // its path below the models folder, with slashes
	// Early says that it is put into its place as soon as it is whole: it makes no model by itself.
	Early bool `json:"early,omitempty"`
	// Replace says that what is in its place is of another version.
	Replace bool `json:"replace,omitempty"`
	// Installed says that this job has put it, or was about to put it, into its place as a part of the model: what was there before
	// isn't the job's to delete.
	Installed bool `json:"placed,omitempty"`

	have *atomic.Int64
}

func (f file) name() string { return filepath.FromSlash(f.Local) }

// record is what is kept of a job over restarts.
type record struct {
	ID           string    `json:"id"`
	State        State     `json:"state"`
	Reason       string    `json:"reason,omitempty"`
	Kind         Kind      `json:"kind,omitempty"`
	Model        string    `json:"model"`
	Asked        string    `json:"asked_quantization,omitempty"`
	Owner        string    `json:"owner,omitempty"`
	Hub          string    `json:"hub"` // its base URL
	Repo         string    `json:"repo"`
	Revision     string    `json:"revision"` // that files are asked for by
	Branch       string    `json:"branch,omitempty"`
	Quantization string    `json:"quantization,omitempty"`
	Folder       string    `json:"folder"` // below the models folder, with slashes
	Files        []file    `json:"files"`
	StartedAt    time.Time `json:"started_at"`
	CompletedAt  time.Time `json:"completed_at,omitzero"`

	elsewhere string         // another folder that has the files; empty: none
	mayResume func(Job) bool // of a plan; see [Request]
}

// sameAs tells whether two records are of the same files.
func (r *record) sameAs(o *record) bool {
	return r.Hub == o.Hub && r.Repo == o.Repo && r.Branch == o.Branch &&
		slices.EqualFunc(r.Files, o.Files, func(a, b file) bool { return a.Path == b.Path })
}

// trouble is why something is being tried again.
type trouble struct {
	why string
	at  time.Time
}

// job is a download. Its fields below mu are guarded by it.
type job struct {
	jobs     *Jobs
	rate     rate
	lastByte atomic.Int64 // when bytes last came, in nanoseconds of Unix time

	mu          sync.Mutex
	record      record
	trouble     trouble
	cancel      context.CancelCauseFunc // ends the run under way
	stopped     chan struct{}           // closed when it has ended; nil before the first
	ran         int64                   // bytes that were there when the run began
	ranAt       time.Time               // when it began
	subscribers map[chan Job]struct{}
}

// snapshot is the job now.
func (j *job) snapshot() Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now()
}

// now is the job now. j.mu is held.
func (j *job) now() Job {
	r := &j.record
	s := Job{
		ID: r.ID, State: r.State, Reason: r.Reason, Kind: r.Kind, Model: r.Model, Owner: r.Owner, Repo: r.Repo, Quantization: r.Quantization,
		Dir: j.jobs.dir(r.Folder), Folder: r.Folder, StartedAt: r.StartedAt, CompletedAt: r.CompletedAt,
	}
	for _, f := range r.Files {
		s.Files = append(s.Files, f.Local)
		s.TotalBytes += f.Size
		s.DownloadedBytes += f.have.Load()
	}
	if r.State != Downloading {
		return s
	}
	if j.trouble.at.UnixNano() > j.lastByte.Load() {
		s.Reason = j.trouble.why
	}
	now := time.Now()
	s.BytesPerSecond = j.rate.perSecond(now)
	speed := s.BytesPerSecond
	if elapsed := now.Sub(j.ranAt).Seconds(); speed == 0 && elapsed > 0 { // a pause of the network: the average tells more
		speed = float64(s.DownloadedBytes-j.ran) / elapsed
	}
	if left := float64(s.TotalBytes - s.DownloadedBytes); speed > 0 && left/speed < (1<<30) {
		s.EstimatedCompletion = now.Add(time.Duration(left / speed * float64(time.Second)))
	}
	return s
}

// set changes the state, tells those who watch, and writes it down. why is nil unless the job fails. j.mu is held.
func (j *job) set(state State, why *Error) {
	j.record.State, j.record.Reason, j.record.Kind, j.trouble = state, "", 0, trouble{}
	if why != nil {
		j.record.Reason, j.record.Kind = why.Message, why.Kind
	}
	if state == Completed {
		j.record.CompletedAt = time.Now().UTC()
	}
	j.jobs.save(&j.record)
	j.tell()
}

// tell gives the job as it is now to those who watch: each has the latest only. j.mu is held.
func (j *job) tell() {
	if len(j.subscribers) == 0 {
		return
	}
	now := j.now()
	for c := range j.subscribers {
		select {
		case <-c: // what wasn't taken is old now
		default:
		}
		c <- now
		if now.Ended() {
			close(c)
			delete(j.subscribers, c)
		}
	}
}

// subscribe gives a channel with the latest state, from now on.
func (j *job) subscribe() (updates <-chan Job, stop func()) {
	c := make(chan Job, 1)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.subscribers[c] = struct{}{}
	c <- j.now()
	if j.now().Ended() {
		close(c)
		delete(j.subscribers, c)
	}
	return c, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if _, ok := j.subscribers[c]; ok {
			delete(j.subscribers, c)
			close(c)
		}
	}
}

// left is how many bytes the job has yet to fetch.
func (j *job) left() int64 {
	s := j.snapshot()
	return s.TotalBytes - s.DownloadedBytes
}
