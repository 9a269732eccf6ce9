package warm

import (
	"bytes"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// lines is a log that goroutines can write.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// world is a store in a folder of its own, with a clock and a disk that the test sets.
type world struct {
	*Store
	t     *testing.T
	dir   string
	model string // the path of a model's file
	log   *lines

	mu          sync.Mutex
	time        time.Time
	free, total int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, dir: filepath.Join(t.TempDir(), "warm"), model: filepath.Join(t.TempDir(), "model.gguf"),
		time: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), free: 100 * gib, total: 1000 * gib, log: new(lines),
	}
	w.must(os.WriteFile(w.model, []byte("weights"), 0o600))
	w.open()
	return w
}

// open opens the store, as after a crash if it is open already.
func (w *world) open() {
	w.t.Helper()
	s, err := Open(w.dir, slog.New(slog.NewTextHandler(w.log, nil)), WithClock(w.now), WithDisk(w.space))
	w.must(err)
	w.Store = s
	w.t.Cleanup(s.Close)
}

func (w *world) must(errs ...error) {
	w.t.Helper()
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.time
}

func (w *world) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.time = w.time.Add(d)
}

func (w *world) space() (free, total int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.free, w.total, nil
}

func (w *world) setFree(bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.free = bytes
}

func (w *world) print() Print {
	return Print{Model: "ann/model", Files: []string{w.model}, Engine: "llama.cpp", Build: "b1", Architecture: "llama", Launch: "-np 1"}
}

func (w *world) shelf() *Shelf { return w.shelfOf(w.print()) }

func (w *world) shelfOf(p Print) *Shelf {
	w.t.Helper()
	h, err := w.Shelf(p)
	w.must(err)
	w.t.Cleanup(h.Close)
	return h
}

// chain returns the chain of a prompt of messages of 100 bytes each.
func chain(messages ...string) prefix.Chain {
	m := prefix.New(0)
	for _, s := range messages {
		m.Message(append(make([]byte, 100-len(s)), s...))
	}
	return m.Chain()
}

// engineWrites writes a file of a state, as an engine does.
func (w *world) engineWrites(h *Shelf, name string, size int) []byte {
	w.t.Helper()
	content := make([]byte, size)
	random := rand.NewChaCha8([32]byte{byte(size)})
	_, _ = random.Read(content)
	w.must(os.WriteFile(filepath.Join(h.Folder(), name), content, 0o644))
	return content
}

// state is one of 1000 bytes, and 100 tokens for each link.
func state(c prefix.Chain) prefix.State {
	return prefix.State{Owner: "ann", Prompt: c, PromptTokens: 100 * len(c), Tokens: 100*len(c) + 10, Bytes: 1000}
}

// put puts a state.
func (w *world) put(h *Shelf, st prefix.State) []byte {
	w.t.Helper()
	content := w.engineWrites(h, "saved", int(st.Bytes))
	w.must(h.Put("saved", st))
	return content
}

// files returns the names of all files in the store's folder but the key, the ledger and the rates.
func (w *world) files() []string {
	w.t.Helper()
	names := []string{}
	w.must(filepath.WalkDir(w.dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() != keyFile && d.Name() != ledgerFile && d.Name() != ratesFile {
			names = append(names, d.Name())
		}
		return err
	}))
	return names
}

// hasOnly fails unless the store keeps the given number of states, and the folder has their files and no others.
func (w *world) hasOnly(states int) {
	w.t.Helper()
	if got := len(w.List()); got != states {
		w.t.Errorf("%d states are kept, want %d", got, states)
	}
	if files := w.files(); len(files) != 2*states {
		w.t.Errorf("%d files for %d states: %v", len(files), states, files)
	}
}

// finds returns how many tokens the best state for a prompt has in common with it, 0 if there is none.
func (w *world) finds(h *Shelf, c prefix.Chain) int {
	found, _ := h.Find(Query{Owner: "ann", Prompt: c})
	return found.Common
}

// lay lays the best state for a prompt, and lifts it.
func (w *world) lay(h *Shelf, c prefix.Chain) error {
	w.t.Helper()
	found, ok := h.Find(Query{Prompt: c})
	if !ok {
		w.t.Fatal("no state is found")
	}
	file, err := h.Lay(w.t.Context(), found.ID)
	if err == nil {
		h.Lift(file)
	}
	return err
}

// path returns the path of the only file with an ending.
func (w *world) path(suffix string) string {
	w.t.Helper()
	paths, err := filepath.Glob(filepath.Join(w.dir, "*", "*"+suffix))
	w.must(err)
	if len(paths) != 1 {
		w.t.Fatalf("%d files end in %s", len(paths), suffix)
	}
	return paths[0]
}

// logged fails unless the text is in the log the given number of times.
func (w *world) logged(text string, times int) {
	w.t.Helper()
	if got := strings.Count(w.log.String(), text); got != times {
		w.t.Errorf("the log has %q %d times, want %d:\n%s", text, got, times, w.log)
	}
}

// Clear deletes the states of a model; "": all.
func (w *world) Clear(model string) (n int, bytes int64) {
	return w.Store.Clear(func(s *Listed) bool { return model == "" || s.Model == model })
}

// WithDisk is SetDisk for a store that is being opened.
func WithDisk(disk func() (free, total int64, err error)) Option {
	return func(s *Store) { s.disk = disk }
}
