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

	"github.com/lmcaddy/lmcaddy/internal/testing/fakepypi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
	elsewhere := misconfigure(t, index.URL)
	parent, temp := t.TempDir(), t.TempDir()
	folder := filepath.Join(parent, "a")
	var told []string
	made, err := Make(t.Context(), Options{
		Folder: folder, Temp: temp, Requirement: "mlx-lm[cpu]==0.31.3",
		Progress: func(doing string) { told = append(told, doing) },
	})
	must(t, err)
	if host := strings.Split(index.URL, "/")[2]; made.Source != host {
		t.Errorf("it says that it is from %s, not %s", made.Source, host)
	}
	for _, doing := range []string{"making a virtual environment", "fetching mlx_lm-0.31.3-py3-none-any.whl"} {
		if !slices.Contains(told, doing) {
			t.Errorf("the progress doesn't say %q: %q", doing, told)
		}
	}
	asked := index.Asked()
	slices.Sort(asked)
	want := []string{"mlx-0.31.2-py3-none-any.whl", "mlx_cpu-0.31.2-py3-none-any.whl", "mlx_lm-0.31.3-py3-none-any.whl"}
	same(t, "files that were fetched", asked, want)
	for _, name := range want {
		name, _, _ := strings.Cut(name, "-")
		if !slices.Contains(packages(t, folder), name) {
			t.Errorf("%s isn't installed", name)
		}
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) != 1 {
		t.Errorf("the folder of the configuration has %v, %v", left, err)
	}

	o := Options{Folder: folder, Temp: temp, Progress: func(string) {}}
	t.Run("a wrong checksum", func(t *testing.T) {
		index := newIndex(t)
		index.Spoil("mlx_lm-0.32.0-py3-none-any.whl")
		fails(t, o, index, "mlx-lm==0.32.0", "THESE PACKAGES DO NOT MATCH THE HASHES")
	})
	t.Run("only sources", func(t *testing.T) {
		index := newIndex(t)
		index.Put("mlx_lm-9.9.9.tar.gz", []byte("its setup.py would be run"))
		fails(t, o, index, "mlx-lm==9.9.9", "satisfies the requirement mlx-lm==9.9.9 (from versions: 0.31.3, 0.32.0)")
		if asked := index.Asked(); len(asked) > 0 {
			t.Errorf("sources were fetched: %q", asked)
		}
	})
	t.Run("the context ends", func(t *testing.T) {
		index := newIndex(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("enough")
		index.Answer("mlx_lm-0.32.0-py3-none-any.whl", func(_ http.ResponseWriter, r *http.Request) {
			cancel(stop)
			<-r.Context().Done()
		})
		o.Requirement, o.Index = "mlx-lm==0.32.0", index.URL
		if _, err := o.pipInstall(ctx); !errors.Is(err, stop) {
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
func fails(t *testing.T, o Options, index *fakepypi.Index, requirement, says string) {
	t.Helper()
	o.Requirement, o.Index = requirement, index.URL
	_, err := o.pipInstall(t.Context())
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

// tool puts a program first on PATH, up to the end of the test.
func tool(t *testing.T, folder, name, script string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// What uv is told. It may have to ask the index for much, so its progress is told.
func TestMake_WithUV(t *testing.T) {
	dir := t.TempDir()
	tool(t, dir, "uv", `echo "$*" "$UV_DEFAULT_INDEX" >> "`+dir+`/asked"
case "$*" in
venv*) for folder; do :; done; mkdir -p "$folder/bin"; printf '#!/bin/sh\necho 3.12\n' > "$folder/bin/python3"; chmod 700 "$folder/bin/python3"; touch "$folder/bin/mlx_lm.server";;
*wrong*) echo 'no solution found' >&2; exit 1;;
*) echo 'Downloading mlx (30.0MiB)' >&2;;
esac`)
	folder := filepath.Join(dir, "made")
	var told []string
	o := Options{Folder: folder, Temp: dir, Requirement: "mlx-lm==1", Index: "https://u:p@host/simple", Progress: func(doing string) { told = append(told, doing) }}
	made, err := Make(t.Context(), o)
	must(t, err)
	same(t, "what is made", made, Made{Interpreter: interpreter, Python: "3.12", Source: "host"})
	same(t, "progress", told, []string{"making a virtual environment", "fetching mlx"})
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	must(t, err)
	same(t, "what uv is told", string(asked), "venv --no-project --python >=3.10,<3.15 "+folder+" https://u:p@host/simple\n"+
		"pip install --python "+folder+"/bin/python3 --only-binary :all: mlx-lm==1 https://u:p@host/simple\n")
	if _, err := os.Stat(filepath.Join(folder, "bin", "mlx_lm.server")); err == nil {
		t.Error("a script that names its folder is left")
	}
	o.Requirement = "wrong==1"
	if _, err := Make(t.Context(), o); err == nil || !strings.Contains(err.Error(), "uv pip install wrong==1: no solution found (exit status 1)") {
		t.Errorf("the error is %v", err)
	}
}

// Old interpreters, and those that can't make environments, are passed over.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, err := Find(t.Context()); !errors.Is(err, ErrNoPython) {
		t.Errorf("there is none, but the error is %v", err)
	}
	tool(t, dir, "python3.13", "exit 1")
	tool(t, dir, "python3", "exit 0")
	if path, err := Find(t.Context()); err != nil || path != filepath.Join(dir, "python3") {
		t.Errorf("found %s, %v", path, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	cancel(stop)
	if _, err := Find(ctx); !errors.Is(err, stop) {
		t.Errorf("after the end of the context: %v", err)
	}
}
