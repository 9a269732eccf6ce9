package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// mlxVariable has the words of the command of a real mlx_lm.server.
const mlxVariable = "LMCADDY_MLX_COMMAND"

const (
	mlxName    = "mlx_lm.server"
	mlxModel   = "../testdata/mlx/lmcaddy/tinychat-mlx"
	mlxPackage = "./internal/testing/fakemlx/program"
)

// mlx is what SetupMLX has found.
var mlx struct {
	real   []string // the command of the real one; empty: the fake is used
	folder string   // of the fake's executable
	shared *FakeMLX // answers as the shipped model does
}

// SetupMLX finds the mlx_lm.server that tests run: the real one that the environment names, or else a fake, which has a
// llama-server of its own behind it. It is called once, after [Setup]. The fake is built in any case, for the faults that a real one
// can't be made to show.
func SetupMLX() (cleanup func(), err error) {
	mlx.real = strings.Fields(os.Getenv(mlxVariable))
	if mlx.folder, err = os.MkdirTemp("", "mlx"); err != nil {
		return nil, err
	}
	cleanup = func() { _ = os.RemoveAll(mlx.folder) }
	build := exec.Command("go", "build", "-o", filepath.Join(mlx.folder, "fakemlx"), mlxPackage)
	build.Dir = ".."
	if output, err := build.CombinedOutput(); err != nil {
		return cleanup, fmt.Errorf("building the fake mlx_lm.server: %w\n%s", err, output)
	}
	llama, err := llamaServer()
	if err != nil {
		return cleanup, err
	}
	mlx.shared, err = installMLX(filepath.Join(mlx.folder, "shared"), Fields{
		"Backend": Fields{"Command": llama, "Model": shipped, "Args": []string{"--threads", "1"}},
	})
	return cleanup, err
}

// MLXIsReal reports whether the tests run a real mlx_lm.server.
func MLXIsReal() bool { return len(mlx.real) > 0 }

// MLXCommand is the command of the mlx_lm.server that answers as the shipped model does.
func MLXCommand() []string {
	if MLXIsReal() {
		return mlx.real
	}
	return mlx.shared.Command()
}

// NewMLXHome makes a home with the shipped model in MLX's format, under the same key.
func NewMLXHome(t testing.TB) *Home {
	t.Helper()
	h := NewBareHome(t)
	h.Path = os.Getenv("PATH")
	h.AddMLX(Model)
	if runtimes != "" {
		if err := os.Symlink(runtimes, filepath.Join(h.Dir, "runtimes")); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// AddMLX copies the shipped model in MLX's format to the models folder, and returns its folder.
func (h *Home) AddMLX(key string) (folder string) {
	h.T.Helper()
	folder = filepath.Join(h.Dir, "models", filepath.FromSlash(key)+"-mlx")
	if err := os.CopyFS(folder, os.DirFS(mlxModel)); err != nil {
		h.T.Fatal(err)
	}
	return folder
}

// FakeMLX is an installed fake mlx_lm.server: a folder with the executable, the script of what its processes do, the gates at which
// they wait, and the journal of what they saw. The package internal/testing/fakemlx of the repository describes them.
type FakeMLX struct{ dir string }

// NewFakeMLX installs a fake with a script for one test. Fields of the script that are left out have their defaults.
func NewFakeMLX(t testing.TB, script Fields) *FakeMLX {
	t.Helper()
	fake, err := installMLX(t.TempDir(), script)
	if err != nil {
		t.Fatal(err)
	}
	return fake
}

// MLXWithTemplate is the command of an mlx_lm.server that answers as the shipped model does with another chat template, which its folder
// has in a file.
func MLXWithTemplate(t testing.TB, file string) []string {
	t.Helper()
	if MLXIsReal() {
		return mlx.real
	}
	llama, err := llamaServer()
	if err != nil {
		t.Fatal(err)
	}
	return NewFakeMLX(t, Fields{"Renders": true, "Backend": Fields{
		"Command": llama, "Model": shipped, "Args": []string{"--threads", "1", "--chat-template-file", file},
	}}).Command()
}

func installMLX(dir string, script Fields) (*FakeMLX, error) {
	text, err := json.Marshal(script)
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{"gates", "starts"} { // MkdirAll makes dir, too
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, "owner"), []byte(strconv.Itoa(os.Getpid())), 0o600),
		os.WriteFile(filepath.Join(dir, "script.json"), text, 0o600),
	)
	for _, name := range []string{mlxName, "mlx_lm", "python3"} { // the others tell its version
		err = errors.Join(err, os.Symlink(filepath.Join(mlx.folder, "fakemlx"), filepath.Join(dir, name)))
	}
	return &FakeMLX{dir}, err
}

// Command starts the fake.
func (f *FakeMLX) Command() []string { return []string{filepath.Join(f.dir, mlxName)} }

// Release opens a gate for good.
func (f *FakeMLX) Release(t testing.TB, gate string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, "gates", gate), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Events are the lines of the journal that are of a kind, such as request.
func (f *FakeMLX) Events(t testing.TB, kind string) []gjson.Result {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(f.dir, "journal.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var found []gjson.Result
	for line := range bytes.Lines(content) {
		if event := gjson.ParseBytes(line); bytes.HasSuffix(line, []byte("\n")) && event.Get("kind").Str == kind {
			found = append(found, event)
		}
	}
	return found
}

// WaitFor waits for an event of a kind.
func (f *FakeMLX) WaitFor(t testing.TB, kind string) {
	t.Helper()
	Eventually(t, Patience, kind+" is in the journal", func() bool { return len(f.Events(t, kind)) > 0 })
}
