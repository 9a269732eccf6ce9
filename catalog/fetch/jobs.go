package fetch

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

const (
	// defaultLanes is how many parts of a large file are fetched at a time. Over loopback one lane is as fast; from servers
	// that hold each connection to some speed, as those of hubs do, four are four times as fast.
	defaultLanes = 4
	// maxEnded is how many ended jobs are remembered.
	maxEnded = 200
)

// Options is what fetching depends on.
type Options struct {
	Models string // the models folder; absolute
	State  string // the folder that jobs are kept in; absolute
	// Hubs are the hubs that may be fetched from. The first serves identifiers without a URL. huggingface.co is added
	// where it is missing.
	Hubs []Hub
	// Memory is how many bytes a model may take, for the choice of one that fits; nil, or 0: not known.
	Memory func() int64
	// GGUFOnly refuses models in other formats, for a machine that has no engine for them.
	GGUFOnly bool
	// Listed is called when a model's files are in their place, with the absolute path of the one that makes a model of
	// them. A job is completed when it returns nil: when the catalog lists the model. nil: nobody is asked.
	Listed func(ctx context.Context, file string) error
	// Here tells where the catalog has a model of a folder, publisher/name, in a quantization, or in whichever where that is
	// empty, and in a file, or in whichever; and of which quantization it is. The hub isn't asked then. nil: nobody is asked.
	Here func(ctx context.Context, folder, quantization, file string) (dir, is string, _ bool)
	// Elsewhere tells which other folder has files of a repository, by their names and sizes; empty: none. nil: nobody is
	// asked. What is there isn't fetched.
	Elsewhere func(repo string, sizes map[string]int64) (dir string)
	// Parallel is how many parts of a large file are fetched at a time; 0: four.
	Parallel int
	// Free tells how many bytes are free where a folder is; nil: the system is asked.
	Free func(dir string) (int64, error)
	Log  *slog.Logger
}

// Jobs is the downloads of one models folder. Its methods may be called from any goroutine.
type Jobs struct {
	models    string
	root      *os.Root // the models folder
	state     *os.Root
	listed    func(ctx context.Context, file string) error
	memory    func() int64
	here      func(ctx context.Context, folder, quantization, file string) (dir, is string, _ bool)
	elsewhere func(repo string, sizes map[string]int64) string
	free      func(dir string) (int64, error)
	ggufOnly  bool
	lanes     int
	log       *slog.Logger
	tune      tuning
	transport *http.Transport
	hubs      atomic.Pointer[hubs]
	claims    claims
	gates     gates

	ctx     context.Context //nolint:containedctx // of all runs; it ends with Close
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	mu   sync.Mutex
	jobs map[string]*job
}

// Open reads the jobs that there are, and goes on with those that were under way.
func Open(o Options) (*Jobs, error) { return open(o, standard) }

func open(o Options, tune tuning) (*Jobs, error) {
	known, err := newHubs(o.Hubs)
	if err != nil {
		return nil, err
	}
	s := &Jobs{
		models: o.Models, listed: o.Listed, memory: o.Memory, here: o.Here, elsewhere: o.Elsewhere, free: o.Free, ggufOnly: o.GGUFOnly,
		lanes: cmp.Or(o.Parallel, defaultLanes), log: o.Log, tune: tune, transport: outbound.NewTransport(), jobs: map[string]*job{},
	}
	s.hubs.Store(known)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.free == nil {
		s.free = freeBytes
	}
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

// Close ends all downloads where they are; the next Open goes on with them. It returns when nothing runs any more.
func (s *Jobs) Close() error {
	s.mu.Lock()
	s.cancel(errClosing)
	all := s.sorted()
	s.mu.Unlock()
	s.running.Wait()
	s.transport.CloseIdleConnections()
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

// SetHubs replaces the hubs. Downloads under way keep the one that they have.
func (s *Jobs) SetHubs(all []Hub) error {
	known, err := newHubs(all)
	if err != nil {
		return err
	}
	s.hubs.Store(known)
	return nil
}

// hubOf is the hub with a base URL, for a job that was begun with it.
func (s *Jobs) hubOf(base string) (*hub, error) {
	if h := s.hubs.Load().find(base); h != nil {
		return h, nil
	}
	return nil, errorf(Invalid, "The hub %s that this model comes from is configured no more. Add it with `hub %s`, and resume the download.", base, base)
}

func (s *Jobs) api(h *hub) *api { return &api{hub: h, client: h.client(s.transport), tune: s.tune} }

// dir is a job's folder.
func (s *Jobs) dir(folder string) string { return filepath.Join(s.models, filepath.FromSlash(folder)) }

// Get is the job with an id. The error's kind is JobNotFound.
func (s *Jobs) Get(id string) (Job, error) {
	j, err := s.find(id)
	if err != nil {
		return Job{}, err
	}
	return j.snapshot(), nil
}

// List is all jobs, the oldest first.
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

// sorted is the jobs in the order they were started. s.mu is held.
func (s *Jobs) sorted() []*job {
	all := make([]*job, 0, len(s.jobs))
	for _, j := range s.jobs {
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *job) int { // what orders them never changes
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

// NoJob is the error about a job that there isn't.
func NoJob(id string) *Error {
	return errorf(JobNotFound, "There is no download job %q. GET /api/v1/models/download lists them.", id)
}

// Subscribe gives a channel on which the latest state of a job can be read: at once, and whenever it has changed. It is closed
// behind the state that ends the job, after stop, and when everything ends. stop has to be called.
func (s *Jobs) Subscribe(id string) (updates <-chan Job, stop func(), err error) {
	j, err := s.find(id)
	if err != nil {
		return nil, nil, err
	}
	updates, stop = j.subscribe()
	return updates, stop, nil
}

// newID makes an id of a job.
func newID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // which never fails
	return "job_" + hex.EncodeToString(b[:])
}
