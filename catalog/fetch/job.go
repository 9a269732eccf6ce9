package fetch

import (
	"cmp"
	"context"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

// State is the state of a download. The words are those of the native v1 API.
type State string

// The states: downloading ⇄ paused, downloading → completed, downloading → failed → downloading.
const (
	Downloading State = "downloading"
	Paused      State = "paused"
	Completed   State = "completed"
	Failed      State = "failed"
	// AlreadyDownloaded is returned by Start for a model that is on disk. No job has this state.
	AlreadyDownloaded State = "already_downloaded"
)

// Download says what is downloaded, and how far that is.
type Download struct {
	ID    string `json:"id"` // "job_" and 10 hex digits; empty when the state is AlreadyDownloaded
	State State  `json:"state"`
	// Reason says why a job failed and what to do next, or why a request is being retried. It may be empty.
	Reason       string    `json:"reason,omitempty"`
	Kind         hub.Kind  `json:"kind,omitempty"`         // of the failure; 0 if it hasn't failed
	Model        string    `json:"model"`                  // as requested
	Owner        string    `json:"owner,omitempty"`        // who requested it first; may be empty
	Hub          string    `json:"hub"`                    // its base URL
	Repo         string    `json:"repo"`                   // publisher/repository on the hub
	Revision     string    `json:"revision"`               // to request files by; empty if the model was on disk already
	Quantization string    `json:"quantization,omitempty"` // of the chosen files; empty if unknown
	Folder       string    `json:"folder"`                 // below the models folder, as publisher/name; it determines the key
	StartedAt    time.Time `json:"started_at"`
	CompletedAt  time.Time `json:"completed_at,omitzero"`
}

// Job is a snapshot of a download.
type Job struct {
	Download
	Dir             string   // the destination; absolute
	Files           []string // below the models folder, with slashes; the last one completes the model
	TotalBytes      int64
	DownloadedBytes int64 // on disk; verified when the job is completed

	// While downloading:
	Waiting             bool      // for its turn, since others are downloaded before it
	BytesPerSecond      float64   // average of the last seconds
	EstimatedCompletion time.Time // before the first byte, it is estimated from earlier jobs; zero while it waits
}

// Page returns the repository's address at its hub, for people; empty if there is none.
func (j Job) Page() string {
	if j.Hub == "" || j.Repo == "" {
		return ""
	}
	return j.Hub + "/" + j.Repo
}

// Ended reports whether the job is completed or has failed.
func (j Job) Ended() bool { return j.State == Completed || j.State == Failed }

type file struct {
	hub.RemoteFile
	Local string `json:"local"` // path below the models folder, with slashes
	// Early says that the file is renamed as soon as it is complete, since it doesn't make a model by itself.
	Early bool `json:"early,omitempty"`
	// Replace says that the existing file is of another version.
	Replace bool `json:"replace,omitempty"`
	// Installed says that this job has renamed the file into place, or was about to. A file that was there before must not be
	// deleted with the job.
	Installed bool `json:"placed,omitempty"`

	have *atomic.Int64
}

func (f file) name() string { return filepath.FromSlash(f.Local) }

// record is the part of a job that is saved.
type record struct {
	Download
	Asked  string `json:"asked_quantization,omitempty"`
	Branch string `json:"branch,omitempty"`
	Files  []file `json:"files"`

	elsewhere string         // another folder that has the files; may be empty
	mayResume func(Job) bool // see [Request]; used until the job starts
}

func (r *record) sameAs(o *record) bool {
	return r.Hub == o.Hub && r.Repo == o.Repo && r.Branch == o.Branch &&
		slices.EqualFunc(r.Files, o.Files, func(a, b file) bool { return a.Path == b.Path })
}

// trouble says why a request is being retried.
type trouble struct {
	why string
	at  time.Time
}

// job is a download. mu guards the fields below it.
type job struct {
	jobs     *Jobs
	rate     rate
	lastByte atomic.Int64 // when bytes last arrived, in nanoseconds of Unix time

	mu          sync.Mutex
	record      record
	trouble     trouble
	cancel      context.CancelCauseFunc // ends the current run
	stopped     chan struct{}           // closed when the run has ended; nil before the first
	isWaiting   bool                    // the current run waits for its turn
	ran         int64                   // bytes on disk when the run began
	ranAt       time.Time               // when it began
	subscribers map[chan Job]struct{}
}

func (j *job) snapshot() Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.now()
}

// now returns the current state. j.mu is held.
func (j *job) now() Job {
	r := &j.record
	s := Job{Download: r.Download, Dir: j.jobs.dir(r.Folder)}
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
	if s.Waiting = j.isWaiting; s.Waiting {
		return s
	}
	now := time.Now()
	s.BytesPerSecond = j.rate.perSecond(now)
	speed := s.BytesPerSecond
	if speed == 0 { // nothing arrives now
		speed = j.average(s.DownloadedBytes, now)
	}
	if speed == 0 {
		speed = cmp.Or(float64(j.jobs.speed.Load()), firstSpeed)
	}
	left := min(float64(max(0, s.TotalBytes-s.DownloadedBytes))/speed, maxLeft.Seconds())
	s.EstimatedCompletion = now.Add(time.Duration(left * float64(time.Second)))
	return s
}

const (
	// firstSpeed is assumed of the first download, in bytes per second: a household's connection of 100 Mbit/s.
	firstSpeed = 12_500_000
	// maxLeft bounds the estimate of a download that hardly proceeds.
	maxLeft = 10 * 365 * 24 * time.Hour
)

// average returns the bytes per second of the current run, which has downloaded that much by now; 0 if nothing has arrived. j.mu is held.
func (j *job) average(downloaded int64, now time.Time) float64 {
	elapsed := now.Sub(j.ranAt).Seconds()
	if downloaded <= j.ran || elapsed <= 0 {
		return 0
	}
	return float64(downloaded-j.ran) / elapsed
}

// set changes the state, saves it, and notifies subscribers. why is nil unless the job failed. j.mu is held.
func (j *job) set(state State, why *hub.Error) {
	if j.record.State == Downloading && state != Downloading {
		if speed := j.average(j.now().DownloadedBytes, time.Now()); speed >= 1 {
			j.jobs.speed.Store(int64(speed))
		}
	}
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

// tell sends the current state to the subscribers. A channel holds only the latest. j.mu is held.
func (j *job) tell() {
	if len(j.subscribers) == 0 && j.jobs.options.Changed == nil {
		return
	}
	now := j.now()
	if j.jobs.options.Changed != nil {
		j.jobs.options.Changed(now)
	}
	for c := range j.subscribers {
		select {
		case <-c: // discard an unread state
		default:
		}
		c <- now
		if now.Ended() {
			close(c)
			delete(j.subscribers, c)
		}
	}
}

func (j *job) left() int64 {
	s := j.snapshot()
	return s.TotalBytes - s.DownloadedBytes
}

const (
	// rateWindow is long enough for a steady figure, and short enough to show that nothing arrives.
	rateWindow  = 5 * time.Second
	rateBuckets = 20
	rateBucket  = rateWindow / rateBuckets
)

// rate measures bytes per second over the last seconds.
type rate struct {
	mu      sync.Mutex
	started time.Time // start of the measurement; may be zero
	slot    int64     // current bucket, counted from the start
	buckets [rateBuckets]int64
}

func (r *rate) start(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started, r.slot, r.buckets = now, 0, [rateBuckets]int64{}
}

func (r *rate) add(n int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forward(now)
	r.buckets[r.slot%rateBuckets] += int64(n)
}

// perSecond returns the average over the window, or since the start if that is later. It falls to 0 if nothing arrives.
func (r *rate) perSecond(now time.Time) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started.IsZero() {
		return 0
	}
	r.forward(now)
	sum := int64(0)
	for _, n := range r.buckets {
		sum += n
	}
	// the current bucket isn't complete, so the window is shorter
	elapsed := now.Sub(r.started)
	length := min(elapsed, elapsed-time.Duration(r.slot)*rateBucket+(rateBuckets-1)*rateBucket)
	return float64(sum) / max(length, time.Millisecond).Seconds()
}

// forward clears buckets that have expired. r.mu is held.
func (r *rate) forward(now time.Time) {
	if r.started.IsZero() {
		r.started = now
	}
	slot := int64(now.Sub(r.started) / rateBucket)
	for i := r.slot + 1; i <= min(slot, r.slot+rateBuckets); i++ {
		r.buckets[i%rateBuckets] = 0
	}
	r.slot = max(r.slot, slot)
}

const recordSuffix = ".json"

func (s *Jobs) save(r *record) {
	err := atomicfile.Write(s.state, r.ID+recordSuffix, 0o600, atomicfile.JSON(r))
	if err != nil { // the job goes on, but a restart will find its old state
		s.log.Error("a download's state can't be saved", "job", r.ID, "error", err)
	}
}

// load reads the saved jobs, and resumes those that were downloading.
func (s *Jobs) load() {
	entries, err := fs.ReadDir(s.state.FS(), ".")
	if err != nil {
		s.log.Error("earlier downloads can't be read", "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasSuffix(name, atomicfile.TempSuffix) {
			_ = s.state.Remove(name) // left by a crash
			continue
		}
		id, ok := strings.CutSuffix(name, recordSuffix)
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		j, err := s.read(id)
		if err != nil {
			s.log.Warn("a download's file can't be read, so it is skipped", "file", name, "error", err)
			continue
		}
		s.jobs[id] = j
	}
	for _, j := range s.sorted() {
		j.mu.Lock()
		if speed := j.record.speed(); speed > 0 {
			s.speed.Store(speed)
		}
		if j.record.State == Downloading {
			s.log.Info("a download resumes", "job", j.record.ID, "model", j.record.Model)
			j.start()
		}
		j.mu.Unlock()
	}
}

func (s *Jobs) read(id string) (*job, error) {
	text, err := s.state.ReadFile(id + recordSuffix)
	if err != nil {
		return nil, err
	}
	j := s.newJob(record{})
	if err := json.Unmarshal(text, &j.record); err != nil {
		return nil, err
	}
	r := &j.record
	publisher, repo, _ := strings.Cut(r.Folder, "/")
	if err := hub.CheckRepo(publisher, repo); err != nil { // its names are checked like those from a hub
		return nil, err
	}
	if !slices.Contains([]State{Downloading, Paused, Completed, Failed}, r.State) {
		return nil, hub.Errorf(hub.Internal, "its state %q is none", r.State)
	}
	if r.ID != id || len(r.Files) == 0 {
		return nil, hub.Errorf(hub.Internal, "it is of another job, or of none")
	}
	for i := range r.Files {
		f := &r.Files[i]
		if _, err := hub.LocalPath(f.Local); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(f.Local, r.Folder+"/") || f.Size < 0 {
			return nil, hub.Errorf(hub.Internal, "its file %q is not in its folder", f.Local)
		}
		f.have = new(atomic.Int64)
		f.have.Store(s.haveOf(*f, j.record.State))
	}
	return j, nil
}

func (s *Jobs) newJob(r record) *job {
	return &job{jobs: s, record: r, subscribers: map[chan Job]struct{}{}}
}

// speed returns the bytes per second of a completed download; 0 if it isn't one.
func (r *record) speed() int64 {
	took := r.CompletedAt.Sub(r.StartedAt)
	if r.State != Completed || took <= 0 {
		return 0
	}
	total := int64(0)
	for _, f := range r.Files {
		total += f.Size
	}
	return int64(float64(total) / took.Seconds())
}
