package harness

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// Model is the key of the shipped model, Bare its name without the publisher.
const (
	Model = "lmcaddy/tinychat"
	Bare  = "tinychat"
)

// Home is the environment of one test: the program's state, a user's folder and a working folder, all new.
type Home struct {
	T    testing.TB
	Dir  string   // $LMCADDY_HOME
	User string   // $HOME, to which nothing may be written
	Work string   // where the program is started, and where its Caddyfiles are
	Path string   // $PATH
	Env  []string // additional variables

	// IsDefault is true of a home that is ~/.lmcaddy, and that no environment variable names.
	IsDefault bool

	Net *Namespace // where its processes run; nil: where the test does

	Binary   string // the lmcaddy to run; empty: the one under test
	ordinary string // the program, executable by an ordinary user; empty: it runs as the user who runs the test
}

// NewHome makes a home with the shipped model and the engine.
func NewHome(t testing.TB) *Home {
	t.Helper()
	h := NewBareHome(t)
	h.AddModel(Model, "tinychat-f16.gguf", ShippedModel(t))
	h.Path = os.Getenv("PATH")
	h.LinkRuntimes()
	return h
}

// LinkRuntimes gives the home the engine of the tests, unless that is on PATH.
func (h *Home) LinkRuntimes() {
	h.T.Helper()
	if runtimes == "" {
		return
	}
	if err := os.Symlink(runtimes, filepath.Join(h.Dir, "runtimes")); err != nil {
		h.T.Fatal(err)
	}
}

// NewBareHome makes an empty home, with a PATH on which nothing is found.
func NewBareHome(t testing.TB) *Home {
	t.Helper()
	root, err := os.MkdirTemp("", "lm") // short: the path of a Unix socket is limited to about 100 bytes
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		t.Fatal(err)
	}
	h := &Home{T: t, Dir: filepath.Join(root, "h"), User: filepath.Join(root, "u"), Work: filepath.Join(root, "w")}
	h.Path = filepath.Join(root, "bin")
	for _, dir := range []string{h.Dir, h.User, h.Work, h.Path} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		h.checkNothingLeft()
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	return h
}

// OwnRuntimes gives the home its own copy of the engine, which a test may break, and returns the path of the executable.
func (h *Home) OwnRuntimes() (executable string) {
	h.T.Helper()
	dir := filepath.Join(h.Dir, "runtimes")
	if runtimes == "" {
		h.T.Fatal("the engine on PATH can't be copied: name a folder of runtimes with LMCADDY_RUNTIMES")
	}
	if err := os.Remove(dir); err != nil {
		h.T.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(runtimes)); err != nil {
		h.T.Fatal(err)
	}
	executable, err := executableIn(dir)
	if err != nil {
		h.T.Fatal(err)
	}
	return executable
}

// Program is the path of the lmcaddy that is run in this home.
func (h *Home) Program() string { return cmp.Or(h.ordinary, h.Binary, binary) }

// In returns the same home for a subtest, which gets its failures.
func (h *Home) In(t testing.TB) *Home {
	home := *h
	home.T = t
	return &home
}

// checkNothingLeft fails the test if anything is left after everything was stopped.
func (h *Home) checkNothingLeft() {
	for _, p := range processesWith(h.Dir) {
		h.T.Errorf("process %d is left: %s", p.PID, strings.Join(p.Args, " "))
		p.kill()
	}
	if files := h.UserFiles(); len(files) > 0 {
		h.T.Errorf("files were written to the user's folder: %s", strings.Join(files, ", "))
	}
}

// UserFiles lists everything in the user's folder.
func (h *Home) UserFiles() []string {
	var files []string
	err := filepath.WalkDir(h.User, func(path string, _ fs.DirEntry, err error) error {
		if path != h.User {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		h.T.Error(err)
	}
	return files
}

// ShippedModel is the shipped model's file.
func ShippedModel(t testing.TB) []byte {
	t.Helper()
	content, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// AddModel writes a file to the models folder, under the publisher and the name of a key.
func (h *Home) AddModel(key, file string, content []byte) (path string) {
	h.T.Helper()
	path = filepath.Join(h.Dir, "models", filepath.FromSlash(key), file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.T.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		h.T.Fatal(err)
	}
	return path
}

// AddRandom makes a model with random weights in the models folder.
func (h *Home) AddRandom(key string, s randommodel.Shape, seed uint64) (path string) {
	h.T.Helper()
	path = filepath.Join(h.Dir, "models", filepath.FromSlash(key), filepath.Base(key)+"-f16.gguf")
	if err := randommodel.Write(path, s, seed, ShippedModel(h.T)); err != nil {
		h.T.Fatal(err)
	}
	return path
}

// WriteFile writes a file to the working folder.
func (h *Home) WriteFile(name, content string) (path string) {
	h.T.Helper()
	path = filepath.Join(h.Work, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		h.T.Fatal(err)
	}
	return path
}

// environment is the whole environment of a process in this home.
func (h *Home) environment() []string {
	env := []string{
		"HOME=" + h.User, "PATH=" + h.Path,
		"OMP_THREAD_LIMIT=1", // like --threads 1, for servers without a Caddyfile
	}
	if !h.IsDefault {
		env = append(env, "LMCADDY_HOME="+h.Dir)
	}
	env = append(env, h.Env...)
	if dir := os.Getenv("TMPDIR"); dir != "" {
		env = append(env, "TMPDIR="+dir)
	}
	return env
}
