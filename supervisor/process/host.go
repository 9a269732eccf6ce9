package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

// Options configures processes.
type Options struct {
	// Journal is a folder with a file for each running engine, by which [EndLeftovers] finds the engine after a crash, and a
	// folder for its socket. Empty: no journal is written, and the sockets are in a temporary folder.
	Journal string
	// Cache is a folder for files that engines share between launches, such as compiled shaders. Empty: none.
	Cache string
	// Stall returns how long a loading engine may write nothing; 0: five minutes. It may be called at any time.
	Stall func() time.Duration
	// Ending reports whether the server is shutting down and will end all processes; nil: false. It may be called at any time.
	Ending func() bool
	// Warm keeps states of slots; nil: none are kept.
	Warm *warm.Store
	// Learn is called when an engine is launched, and returns what is called once the engine answers, before its instance is ready: to find
	// out something about its model. That takes a bounded time. nil: there is nothing to find out. ctx ends with the engine.
	Learn func(ctx context.Context, spec *schedule.Spec, b Build) func(ask Ask)
	// Port returns a port for an engine; nil: one that is free.
	Port func() (int, error)
}

// Ask sends a JSON body, in pieces, to an engine, and returns its answer.
type Ask func(ctx context.Context, path string, body [][]byte) (status int, answer []byte, _ error)

// Host is what the processes of a supervisor have in common.
type Host struct {
	Options
	id       string // unique among the hosts of this process
	folders  folders
	settling settling
	tellOnce sync.Once // guards the log line that there is no sandbox
}

// NewHost returns a host without processes.
func NewHost(options Options) *Host {
	if options.Port == nil {
		options.Port = freePort
	}
	return &Host{Options: options, id: rand.Text(), folders: folders{journal: options.Journal}}
}

// Close removes what the processes have left, once all of them have exited.
func (h *Host) Close() { h.folders.close() }

const defaultStall = 5 * time.Minute

func (h *Host) stall() time.Duration {
	if h.Stall == nil {
		return defaultStall
	}
	return cmp.Or(h.Stall(), defaultStall)
}

// engines are the children of all hosts.
var engines = child.Kind{Variable: "LMCADDY_ENGINE", Noun: "an engine"}

func (h *Host) mark(gen uint64) child.Mark {
	return engines.Mark(h.Journal, fmt.Sprintf("%s.%d", h.id, gen))
}

// settleTimeout is how long a request waits for states that are just being kept.
const settleTimeout = 5 * time.Second

// settling are the states of all processes that are on their way from a slot onto the shelf. The process of one may be gone when it is put
// there, and the next request for it may come at once, as when an instance is restarted with new settings.
type settling struct {
	mu   sync.Mutex
	jobs map[*saveJob]struct{}
}

// add adds a state that is to be written. The caller calls end when it is kept, or won't be.
func (s *settling) add(job *saveJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		s.jobs = map[*saveJob]struct{}{}
	}
	job.ended = make(chan struct{})
	s.jobs[job] = struct{}{}
}

// write notes that the engine has written a state, which doesn't change any more.
func (s *settling) write(job *saveJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	job.isWritten = true
}

func (s *settling) end(job *saveJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(job.ended)
	delete(s.jobs, job)
}

func (s *settling) isForgotten(job *saveJob) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return job.isForgotten
}

// Forget keeps the states that an event names from being kept.
func (h *Host) Forget(ev schedule.Forgot) {
	h.settling.mu.Lock()
	defer h.settling.mu.Unlock()
	for job := range h.settling.jobs {
		job.isForgotten = job.isForgotten || ev.Has(job.key, job.state.Owner, job.state.Conversation)
	}
}

// Wait waits for the states of a model that an engine has written and that match, as a rule for one at most.
func (s *settling) Wait(ctx context.Context, key string, match func(*prefix.State) bool) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	s.mu.Lock()
	var all []*saveJob
	for job := range s.jobs {
		if job.isWritten && job.key == key && match(&job.state) {
			all = append(all, job)
		}
	}
	s.mu.Unlock()
	for _, job := range all {
		select {
		case <-job.ended:
		case <-ctx.Done():
			return
		}
	}
}

// places are the variables that say where an engine may write.
func (l Launch) places() []string {
	if l.Folder == "" {
		return nil
	}
	env := []string{"TMPDIR=" + l.Folder}
	if l.isConfined() {
		dir := cmp.Or(l.Cache, l.Folder)
		env = append(env, "HOME="+dir, "XDG_CACHE_HOME="+dir, "CUDA_CACHE_PATH="+filepath.Join(dir, "cuda"))
	}
	return env
}

func (l Launch) files() []string {
	var files []string
	for _, path := range []string{l.Model.Path, l.Model.Projector} {
		if path != "" {
			files = append(files, path)
		}
	}
	for i := range l.Adapters {
		files = append(files, l.Adapters[i].Path)
	}
	if l.Draft != nil {
		files = append(files, l.Draft.Path)
	}
	return files
}

func (l *Launch) address() string {
	if l.Socket != "" {
		return l.Socket
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Port))
}

// freePort returns a free port. If another program takes it before the engine does, the engine reports that, and another port is tried.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port for the engine: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

const (
	socketName = "s.sock"
	// nameLength is the length of the random name of a launch's folder. Socket paths have to be short.
	nameLength = 8
	// shortPrefix is the prefix of the temporary folder that is used if the path in the journal would be too long for a socket.
	shortPrefix = "lmcaddy-"
	shortLink   = "short" // links to that folder, so that the next start finds it after a crash
)

// isSocketPath reports whether an engine can listen on a socket at path. llama-server splits its hosts at commas.
func isSocketPath(path string) bool {
	longest := 103 // bytes
	if runtime.GOOS == "linux" {
		longest = 107
	}
	return len(path) <= longest && !strings.ContainsRune(path, ',')
}

// folders creates a folder for each launch, for the engine's socket and files. It isn't accessible to other users.
type folders struct {
	journal string // parent of the folders; empty: a temporary folder

	mu    sync.Mutex
	short string // parent of the folders if sockets can't be in the journal; empty: not needed so far
}

func (f *folders) make() (string, error) {
	name := strings.ToLower(rand.Text()[:nameLength])
	dir := filepath.Join(f.journal, name)
	if f.journal != "" {
		_ = os.MkdirAll(f.journal, 0o700) // an error shows below
	}
	if f.journal != "" && isSocketPath(filepath.Join(dir, socketName)) {
		if err := os.Mkdir(dir, 0o700); err == nil {
			return dir, nil
		}
	}
	short, err := f.makeShort()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(short, name)
	return dir, os.Mkdir(dir, 0o700)
}

func (f *folders) makeShort() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.short != "" {
		return f.short, nil
	}
	errs := []error{errors.New("no folder is suitable for sockets")}
	for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		if info, err := os.Stat(parent); err != nil || !filepath.IsAbs(parent) ||
			(info.Mode()&0o002 != 0 && info.Mode()&os.ModeSticky == 0) {
			continue // unsafe: others could rename what is in it
		}
		dir, err := os.MkdirTemp(parent, shortPrefix)
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case !isPrivate(dir):
			err = fmt.Errorf("%s is accessible to other users", dir)
		case !isSocketPath(filepath.Join(dir, strings.Repeat("x", nameLength), socketName)):
			err = fmt.Errorf("%s isn't suitable for sockets", dir)
		case f.journal != "":
			_ = os.Symlink(dir, filepath.Join(f.journal, shortLink)) // for the next start, after a crash
		}
		if err == nil {
			f.short = dir
			return dir, nil
		}
		errs = append(errs, err, os.Remove(dir))
	}
	return "", errors.Join(errs...)
}

func (f *folders) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.short != "" {
		_ = os.RemoveAll(f.short)
		_ = os.Remove(filepath.Join(f.journal, shortLink))
	}
}

// EndLeftovers kills the engines that a crashed server with this journal left behind, removes their folders, and returns when
// they are gone. No other server may be using the journal.
func EndLeftovers(ctx context.Context, journal string, log *slog.Logger) {
	engines.EndLeftovers(ctx, journal, log)
	left, _ := os.ReadDir(journal)
	for _, entry := range left {
		path := filepath.Join(journal, entry.Name())
		switch {
		case entry.IsDir():
			_ = os.RemoveAll(path)
		case entry.Name() == shortLink:
			if dir, err := os.Readlink(path); err == nil && strings.HasPrefix(filepath.Base(dir), shortPrefix) && isPrivate(dir) {
				_ = os.RemoveAll(dir)
			}
			_ = os.Remove(path)
		}
	}
}
