package venv

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/lmcaddy/lmcaddy/internal/fakepypi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func findPython(t *testing.T) Python {
	t.Helper()
	python, err := Find(t.Context())
	if err != nil {
		t.Fatalf("%v\n(tools/venv.sh installs it)", err)
	}
	return python
}

func newIndex(t *testing.T) *fakepypi.Index {
	t.Helper()
	return fakepypi.New(t, append(fakepypi.MLX(), fakepypi.MLXLM("0.31.3", ""), fakepypi.MLXLM("0.32.0", ""))...)
}

// ask runs an environment's interpreter.
func ask(t *testing.T, python string, arguments ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, append([]string{"-I"}, arguments...)...)
	cmd.Env = []string{"PATH=/dev/null"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// Not parallel, since it sets variables. Its tests share an environment and an unpacked pip, since those take seconds of CPU time.
func TestMake(t *testing.T) {
	index := newIndex(t)
	python, elsewhere := findPython(t), misconfigure(t, index.URL)
	parent, temp := t.TempDir(), t.TempDir()
	folder := filepath.Join(parent, "a")
	var told []string
	made, err := python.Make(t.Context(), Options{
		Folder: folder, Temp: temp, Requirement: "mlx-lm[cpu]==0.31.3",
		Progress: func(doing string, _, _ int64) { told = append(told, doing) },
	})
	must(t, err)
	if host := strings.Split(index.URL, "/")[2]; made.Source != host {
		t.Errorf("it says that it is from %s, not %s", made.Source, host)
	}
	for _, doing := range []string{"making a virtual environment", "looking for mlx-lm", "fetching mlx_lm-0.31.3-py3-none-any.whl", "installing 3 packages"} {
		if !slices.Contains(told, doing) {
			t.Errorf("the progress doesn't say %q: %q", doing, told)
		}
	}
	asked := index.Asked()
	slices.Sort(asked)
	want := []string{"mlx-0.31.2-py3-none-any.whl", "mlx_cpu-0.31.2-py3-none-any.whl", "mlx_lm-0.31.3-py3-none-any.whl"}
	same(t, "files that were fetched", asked, want)
	same(t, "packages", packages(t, folder), []string{"mlx", "mlx_cpu", "mlx_lm"})
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) != 1 {
		t.Errorf("the folder of the configuration has %v, %v", left, err)
	}

	tool := pip{
		python: filepath.Join(folder, interpreter), program: []string{filepath.Join(temp, unpacked, "pip")},
		environment: cleanEnvironment(os.Environ(), temp),
	}
	t.Run("a wrong checksum", func(t *testing.T) {
		index := newIndex(t)
		index.Spoil("mlx_lm-0.32.0-py3-none-any.whl")
		fails(t, tool, index, "mlx-lm==0.32.0", "THESE PACKAGES DO NOT MATCH THE HASHES")
	})
	t.Run("only sources", func(t *testing.T) {
		index := newIndex(t)
		index.Put("mlx_lm-9.9.9.tar.gz", []byte("its setup.py would be run"))
		fails(t, tool, index, "mlx-lm==9.9.9", "satisfies the requirement mlx-lm==9.9.9 (from versions: 0.31.3, 0.32.0)")
		if asked := index.Asked(); len(asked) > 0 {
			t.Errorf("sources were fetched: %q", asked)
		}
	})
	t.Run("a package requires pip", func(t *testing.T) { // the unpacked one isn't part of the environment
		index := fakepypi.New(t, fakepypi.Wheel{Name: "needy", Version: "1.0", Requires: []string{"pip"}})
		fails(t, tool, index, "needy", "satisfies the requirement pip (from needy) (from versions: none)")
	})
	t.Run("the context ends", func(t *testing.T) {
		index := newIndex(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("enough")
		index.Answer("mlx_lm-0.32.0-py3-none-any.whl", func(_ http.ResponseWriter, r *http.Request) {
			cancel(stop)
			<-r.Context().Done()
		})
		o := Options{Requirement: "mlx-lm==0.32.0", Progress: func(string, int64, int64) {}}
		if err := tool.install(ctx, o, settings{"index-url": index.URL}); !errors.Is(err, stop) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("it can be moved", func(t *testing.T) {
		moved := filepath.Join(parent, "b")
		must(t, os.Rename(folder, moved))
		must(t, os.RemoveAll(temp))
		if got := ask(t, filepath.Join(moved, made.Interpreter), "-m", "mlx_lm", "--version"); got != "0.31.3" {
			t.Errorf("it says %q", got)
		}
		scripts, err := filepath.Glob(filepath.Join(moved, "bin", "[^p]*"))
		must(t, err)
		same(t, "scripts", scripts, nil)
	})
}

// misconfigure makes variables and pip's configuration change much, up to the end of the test. Only the index is to be taken from
// them. It returns a folder with a file that is to stay alone.
func misconfigure(t *testing.T, index string) string {
	t.Helper()
	home, elsewhere := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(elsewhere, "mlx_lm.py"), []byte("print('from PYTHONPATH')"), 0o600))
	must(t, os.MkdirAll(filepath.Join(home, ".config", "pip"), 0o700))
	config := "[global]\nindex-url = http://127.0.0.1:1/simple\nuser = true\nrequire-hashes = true\n[install]\nno-deps = true\ntarget = " + elsewhere + "\n"
	must(t, os.WriteFile(filepath.Join(home, ".config", "pip", "pip.conf"), []byte(config), 0o600))
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, ".config"), "PIP_INDEX_URL": index, "PIP_DRY_RUN": "1",
		"PIP_PREFIX": elsewhere, "PYTHONPATH": elsewhere, "PYTHONHOME": "/nowhere", "VIRTUAL_ENV": elsewhere,
	} {
		t.Setenv(name, value)
	}
	return elsewhere
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s:\n%s", what, diff)
	}
}

// fails checks that pip can't install a requirement, and what the error says.
func fails(t *testing.T, tool pip, index *fakepypi.Index, requirement, says string) {
	t.Helper()
	o := Options{Requirement: requirement, Progress: func(string, int64, int64) {}}
	err := tool.install(t.Context(), o, settings{"index-url": index.URL})
	for _, words := range []string{"pip install " + requirement, says} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("the error doesn't say %q: %v", words, err)
		}
	}
}

// packages returns the names of the packages that are installed in an environment.
func packages(t *testing.T, environment string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(environment, "lib", "python3*", "site-packages", "*.dist-info"))
	must(t, err)
	var names []string
	for _, path := range found {
		name, _, _ := strings.Cut(filepath.Base(path), "-")
		names = append(names, name)
	}
	return names
}

// Where the pip that comes with Python can't be unpacked, ensurepip installs it.
func TestMake_WithEnsurepip(t *testing.T) {
	t.Parallel()
	folder, temp := filepath.Join(t.TempDir(), "a"), t.TempDir()
	must(t, os.WriteFile(filepath.Join(temp, unpacked), nil, 0o600)) // not a folder
	made, err := findPython(t).Make(t.Context(), Options{Folder: folder, Temp: temp, Requirement: "mlx", Index: newIndex(t).URL})
	must(t, err)
	ask(t, filepath.Join(folder, made.Interpreter), "-c", "import mlx")
	if names := packages(t, folder); !slices.Contains(names, "pip") {
		t.Errorf("pip was unpacked all the same; the environment has %q", names)
	}
}
