// Package fetch downloads models from hubs that implement the API of huggingface.co.
//
//	jobs, err := fetch.Open(fetch.Options{Models: home.Models(), State: home.Downloads(), Hubs: hubs, Listed: …, Log: log})
//	job, err := jobs.Start(ctx, fetch.Request{Model: "qwen/qwen3-4b"})
//
// # What is downloaded
//
// A request names an entry of the built-in list of models, publisher/repository, or the URL of a hub. Jobs chooses one model
// among the repository's files: the requested quantization, or else the best one that fits this machine, with all its parts
// and its projector. The files go to <models>/<publisher>/<repository>, so the model's key is the name that was requested.
//
// # What is stored
//
// A job is a JSON file in the state folder. The bytes downloaded of a file are in <file>.part, in the file's folder, and
// <file>.part.json says which bytes these are. Both survive the process: [Open] resumes downloads. A file gets its name once
// its checksum has been verified. The file that completes the model is renamed last.
//
// # What is trusted
//
// The hub's list is trusted for the checksums of files, and for nothing else. The hub's token is sent to the hub's own address
// only. File names are checked, and every file is opened below an [os.Root] of the models folder.
//
// # Goroutines
//
// [Jobs] holds the jobs. Each job that is downloading has one goroutine, which starts others for the parallel parts of a file,
// its checksum, checkpoints and subscribers. All of them have ended when [Jobs.Close] returns.
package fetch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

const (
	// defaultLanes is the number of parallel ranges for a large file. Over loopback one is as fast. Hubs limit the speed of each
	// connection, so four are four times as fast.
	defaultLanes = 4
	// maxEnded is the number of ended jobs that are remembered.
	maxEnded = 200
)

// Options configures Jobs.
type Options struct {
	Models string // the models folder; absolute
	State  string // the folder for saved jobs; absolute
	// Hubs are the hubs to download from. The first one serves names without a URL. huggingface.co is added if it is missing.
	Hubs []hub.Config
	// Memory returns the number of bytes available to a model, for choosing one that fits. It may be nil or return 0: unknown.
	Memory func() int64
	// Formats returns those that an engine on this machine runs now; models in others are rejected. It is called for each request.
	// If it is nil or returns none, they are all that can be fetched.
	Formats func() []catalog.Format
	// Prefers is the format that is chosen where there are several, if an engine runs it; empty: GGUF.
	Prefers catalog.Format
	// Listed is called when all files of a model are in place, with the absolute path of the file that completes it. The job is
	// completed when Listed returns nil, which means that the catalog lists the model. It may be nil.
	Listed func(ctx context.Context, file string) error
	// Here looks a model up in the catalog by its folder, publisher/name, and optionally by quantization and file. It returns the
	// model's folder and quantization. A model that it finds isn't looked up at the hub. It may be nil.
	Here func(ctx context.Context, folder, quantization, file string) (dir, is string, _ bool)
	// Elsewhere returns another folder that holds the files of a repository, given their names and sizes, or "". These files
	// aren't downloaded. It may be nil.
	Elsewhere func(repo string, sizes map[string]int64) (dir string)
	// Changed is called with the state of a job after each change of any, and four times a second while one downloads. It must return at
	// once, and must not call back; nil: nothing is.
	Changed func(Job)
	// Parallel is the number of parallel ranges for a large file; 0: four.
	Parallel int
	// AtOnce is how many downloads run at a time, while others wait; 0: [DefaultAtOnce].
	AtOnce int
	// Free returns the free space of the disk that holds a folder, in bytes; nil: ask the system.
	Free func(dir string) (int64, error)
	Log  *slog.Logger
}

// Jobs manages the downloads into one models folder. Its methods may be called from any goroutine.
type Jobs struct {
	*hub.Finder
	modelsDisk

	options Options
	state   *os.Root
	log     *slog.Logger
	tune    tuning
	claims  claims
	gates   sync.Map // of *gate, by hub
	queue   queue

	ctx     context.Context //nolint:containedctx // of all runs; it ends with Close
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	speed atomic.Int64 // average of the last run in which bytes arrived, in bytes per second; 0: there was none

	mu   sync.Mutex
	jobs map[string]*job
}

// Open reads the saved jobs, and resumes those that were downloading.
func Open(o Options) (*Jobs, error) { return open(o, standard) }

func open(o Options, tune tuning) (*Jobs, error) {
	f, err := hub.NewFinder(o.Hubs, tune.Limits)
	if err != nil {
		return nil, err
	}
	f.Memory, f.Formats, f.Prefers = o.Memory, o.Formats, o.Prefers
	o.Parallel, o.Log = cmp.Or(o.Parallel, defaultLanes), cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Free == nil {
		o.Free = func(dir string) (int64, error) {
			usage, err := disk.Usage(dir)
			if err != nil {
				return 0, err
			}
			return int64(min(usage.Free, 1<<62)), nil
		}
	}
	s := &Jobs{Finder: f, modelsDisk: modelsDisk{models: o.Models}, options: o, log: o.Log, tune: tune, jobs: map[string]*job{}}
	s.SetAtOnce(o.AtOnce)
	if s.root, err = openFolder(o.Models); err != nil {
		return nil, err
	}
	if s.state, err = openFolder(o.State); err != nil {
		return nil, errors.Join(err, s.root.Close())
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.load()
	return s, nil
}

// SetAtOnce changes how many downloads run at a time; see [Options].
func (s *Jobs) SetAtOnce(most int) { s.queue.limit(cmp.Or(most, DefaultAtOnce)) }

func openFolder(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return nil, fmt.Errorf("making the folder %s: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder %s: %w", dir, err)
	}
	return root, nil
}

// Close interrupts all downloads; the next Open resumes them. It returns when no goroutine is left.
func (s *Jobs) Close() error {
	s.mu.Lock()
	s.cancel(errClosing)
	all := s.sorted()
	s.mu.Unlock()
	s.running.Wait()
	s.Transport.CloseIdleConnections()
	for _, j := range all {
		j.mu.Lock()
		for c := range j.subscribers {
			delete(j.subscribers, c)
			close(c)
		}
		j.mu.Unlock()
	}
	return errors.Join(s.root.Close(), s.state.Close())
}

// Get returns the job with an id. The error's kind is JobNotFound.
func (s *Jobs) Get(id string) (Job, error) {
	j, err := s.find(id)
	if err != nil {
		return Job{}, err
	}
	return j.snapshot(), nil
}

// List returns all jobs, oldest first.
func (s *Jobs) List() []Job {
	s.mu.Lock()
	all := s.sorted()
	s.mu.Unlock()
	list := make([]Job, 0, len(all))
	for _, j := range all {
		list = append(list, j.snapshot())
	}
	return list
}

// sorted returns the jobs in the order in which they were started. s.mu is held.
func (s *Jobs) sorted() []*job {
	all := make([]*job, 0, len(s.jobs))
	for _, j := range s.jobs {
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *job) int { // these fields never change
		return cmp.Or(a.record.StartedAt.Compare(b.record.StartedAt), cmp.Compare(a.record.ID, b.record.ID))
	})
	return all
}

func (s *Jobs) find(id string) (*job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[id]; j != nil {
		return j, nil
	}
	return nil, NoJob(id)
}

// NoJob returns the error for an unknown job.
func NoJob(id string) *hub.Error {
	return hub.Errorf(hub.JobNotFound, "There is no download job %q. GET /api/v1/models/download lists them.", id)
}

// Subscribe returns a channel that receives the state of a job at once and after each change. Only the latest state is kept.
// The channel is closed after the final state, when stop is called, and by Close. The caller must call stop.
func (s *Jobs) Subscribe(id string) (updates <-chan Job, stop func(), err error) {
	j, err := s.find(id)
	if err != nil {
		return nil, nil, err
	}
	c := make(chan Job, 1)
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	c <- now
	if now.Ended() {
		close(c)
		return c, func() {}, nil
	}
	j.subscribers[c] = struct{}{}
	return c, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if _, ok := j.subscribers[c]; ok {
			delete(j.subscribers, c)
			close(c)
		}
	}, nil
}

func newID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	return "job_" + hex.EncodeToString(b[:])
}

// tuning holds the numbers that tests change.
type tuning struct {
	hub.Limits

	// lastRetry is the longest delay between retries, and attempts their number without a byte before the job fails. That takes about five
	// minutes, enough for a hub to restart or a router to be plugged in again.
	lastRetry time.Duration
	attempts  int
	// checkpoint is the interval of checkpoints, which bounds what is downloaded again after a crash.
	checkpoint time.Duration
	// tick is the interval at which subscribers are notified.
	tick time.Duration
	// chunk is the length of one range request, in bytes.
	chunk int64
	// parallelFrom is the size from which files are downloaded in parallel ranges, in bytes.
	parallelFrom int64
}

var standard = tuning{
	Limits:       hub.DefaultLimits,
	lastRetry:    60 * time.Second,
	attempts:     12,
	checkpoint:   time.Second,
	tick:         250 * time.Millisecond,
	chunk:        64 << 20,
	parallelFrom: 96 << 20,
}
