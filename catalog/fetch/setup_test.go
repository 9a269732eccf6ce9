package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

func TestMain(m *testing.M) {
	childIfAsked()
	goleak.VerifyTestMain(m)
}

// patience is enough for busy machines.
const patience = 60 * time.Second

// quick is the tuning of tests.
var quick = tuning{
	Limits:       hub.Limits{Stall: 10 * time.Second, FirstRetry: 2 * time.Millisecond, Tries: 3, Patience: time.Second, Search: patience},
	lastRetry:    20 * time.Millisecond,
	attempts:     6,
	checkpoint:   5 * time.Millisecond,
	tick:         2 * time.Millisecond,
	chunk:        256 << 10,
	parallelFrom: 1 << 20,
}

// world is a hub and a home with jobs.
type world struct {
	*testing.T
	hub  *fakehub.Hub
	home string
	opts Options
	tune tuning
	jobs *Jobs
}

const (
	tiny     = "acme/tiny-GGUF"
	tinyFile = "tiny-Q4_K_M.gguf"
	tinySize = 1<<20 + 300<<10 + 12345
)

// newWorld creates a repository acme/tiny-GGUF with one model.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, hub: fakehub.Start(t), home: t.TempDir(), tune: quick}
	w.opts = Options{
		Models: filepath.Join(w.home, "models"), State: filepath.Join(w.home, "downloads"), Hubs: []hub.Config{{URL: w.hub.URL}},
		Log: slog.New(slog.DiscardHandler),
	}
	w.hub.Add(tiny, fakehub.Files{
		tinyFile: fakehub.Random(1, tinySize), "README.md": fakehub.Text("tiny"),
		".gitattributes": fakehub.Text("*.gguf"),
	})
	return w
}

// open opens the jobs if they aren't open.
func (w *world) open() *Jobs {
	w.Helper()
	if w.jobs == nil {
		jobs, err := open(w.opts, w.tune)
		if err != nil {
			w.Fatal(err)
		}
		w.jobs = jobs
		w.Cleanup(w.close)
	}
	return w.jobs
}

func (w *world) close() {
	w.Helper()
	if w.jobs != nil {
		if err := w.jobs.Close(); err != nil {
			w.Error(err)
		}
		w.jobs = nil
	}
}

// start starts a download of the repository by its URL.
func (w *world) start(repo string) Job {
	w.Helper()
	job, err := w.open().Start(w.Context(), Request{Model: w.hub.URL + "/" + repo})
	if err != nil {
		w.Fatal(err)
	}
	return job
}

// await waits until a job has the wanted state.
func (w *world) await(id string, wanted func(Job) bool) Job {
	w.Helper()
	updates, stop, err := w.jobs.Subscribe(id)
	if err != nil {
		w.Fatal(err)
	}
	defer stop()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	var last Job
	for {
		select {
		case job, ok := <-updates:
			if !ok {
				w.Fatalf("the job ended as %s (%s) and not as wanted", last.State, last.Reason)
			}
			if last = job; wanted(job) {
				return job
			}
		case <-ctx.Done():
			w.Fatalf("the job is %s (%s) still, with %d of %d bytes", last.State, last.Reason, last.DownloadedBytes, last.TotalBytes)
		}
	}
}

// completes waits until a job is completed.
func (w *world) completes(job Job) Job {
	w.Helper()
	return w.await(job.ID, func(j Job) bool {
		if j.State == Failed {
			w.Fatalf("it failed: %s", j.Reason)
		}
		return j.State == Completed
	})
}

// path returns the path of a file in the models folder.
func (w *world) path(name string) string {
	return filepath.Join(w.opts.Models, filepath.FromSlash(name))
}

// holds checks the content of a file.
func (w *world) holds(name string, want fakehub.Content) {
	w.Helper()
	if got := sum(w, w.path(name)); got != fakehub.Sum(want) {
		w.Errorf("%s has the checksum %s", name, got)
	}
}

func sum(t testing.TB, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// files returns the files in the models folder, by path.
func (w *world) files() []string {
	w.Helper()
	var all []string
	err := filepath.WalkDir(w.opts.Models, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			rel, _ := filepath.Rel(w.opts.Models, path)
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// hubFiles is a repository with one small model.
func (w *world) hubFiles() fakehub.Files {
	return fakehub.Files{"m-Q4_K_M.gguf": fakehub.Random(4, 10<<10)}
}

// kindOf returns the kind of an error of a method; 0 if it has none.
func kindOf(err error) hub.Kind {
	if e, ok := errors.AsType[*hub.Error](err); ok {
		return e.Kind
	}
	return 0
}
