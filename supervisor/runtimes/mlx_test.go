package runtimes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakepypi"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes/venv"
)

func TestGetMLX(t *testing.T) {
	t.Parallel()
	index := fakepypi.New(t, append(fakepypi.MLX(), fakepypi.MLXLM("0.31.3", "import warnings; warnings.warn('beware')"))...)
	dir := t.TempDir()
	s := openTest(dir)
	var told []string
	options := GetOptions{Engine: MLXLM, Index: index.URL, Progress: func(p Progress) { told = append(told, p.Doing) }}
	got, err := s.Get(t.Context(), options)
	must(t, err)
	name := "mlx-lm-0.31.3-cpu"
	if !strings.HasPrefix(got.Origin, "127.0.0.1:") || !strings.Contains(got.Origin, ", Python 3.") {
		t.Errorf("it is from %q", got.Origin)
	}
	want := Runtime{
		Name: name, Engine: MLXLM, Version: "0.31.3", Variant: "cpu", Origin: got.Origin, Path: filepath.Join(dir, name, "bin", "python3"),
		Args: []string{"-I", "-m", "mlx_lm", "server"}, Source: Installed, Selected: true,
	}
	same(t, "runtime", got, want)
	same(t, "folder", contents(t, dir), []string{name, "selected.mlx-lm"})
	for _, doing := range []string{"making a virtual environment", "fetching mlx_lm-0.31.3-py3-none-any.whl", "checking that it starts"} {
		if !slices.Contains(told, doing) {
			t.Errorf("the progress doesn't say %q: %q", doing, told)
		}
	}
	found, err := s.Find(MLXLM, "")
	must(t, err)
	same(t, "found", found, want)
	out, err := exec.CommandContext(t.Context(), found.Path, "-I", "-m", "mlx_lm", "--version").Output()
	must(t, err)
	same(t, "what it says", string(out), "0.31.3\n")

	before := len(index.Asked())
	want.Already = true
	got, err = s.Get(t.Context(), options)
	must(t, err)
	same(t, "again", got, want)
	if asked := index.Asked()[before:]; len(asked) > 0 {
		t.Errorf("it was fetched again: %q", asked)
	}
}

func TestGetMLX_TriesTheCPUIfCUDADoesNotStart(t *testing.T) {
	installed := fakePython{
		install: `touch "$packages/$requirement"`,
		start:   `if [ -e "$packages"/*cuda* ]; then echo 'ImportError: libcuda.so.1: no such file' >&2; exit 1; fi; echo 0.30.0`,
	}.put(t)
	dir := t.TempDir()
	s := openTest(dir)
	s.hardware = func(context.Context) hardware {
		return hardware{os: "linux", arch: "amd64", nvidia: &nvidia{cuda: dotted{13, 0}}}
	}
	got, err := s.Get(t.Context(), GetOptions{Engine: MLXLM, Version: "0.30.0"})
	must(t, err)
	same(t, "name", got.Name, "mlx-lm-0.30.0-cpu")
	same(t, "folder", contents(t, dir), []string{"mlx-lm-0.30.0-cpu", "selected.mlx-lm"})
	same(t, "environment", contents(t, filepath.Join(dir, got.Name, "packages")), []string{"mlx-lm[cpu]==0.30.0"})
	tried, err := os.ReadFile(installed)
	must(t, err)
	same(t, "what was tried", string(tried), "mlx-lm[cuda13]==0.30.0\nmlx-lm[cpu]==0.30.0\n")
}

func TestGetMLX_CancelledLeavesNothing(t *testing.T) {
	fakePython{install: "echo Downloading mlx.whl; exec sleep 1000"}.put(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := openTest(dir).Get(ctx, GetOptions{Engine: MLXLM, Progress: func(p Progress) {
		if p.Doing == "fetching mlx.whl" {
			cancel()
		}
	}})
	contains(t, err, "interrupted", "nothing was installed")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error isn't the context's: %v", err)
	}
	same(t, "what is left", contents(t, dir), []string{})
}

func TestGetMLX_KilledEndsPip(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	fakePython{install: "RUNTIMES_TEST_FETCH=" + server.URL + " '" + os.Args[0] + "' & wait"}.put(t)
	dir := t.TempDir()
	child := startGet(t, dir, GetOptions{Engine: MLXLM})
	<-begun
	must(t, child.Process.Kill())
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended well")
	}
	<-gone // so what pip has started has closed its connection
	if left := contents(t, dir); len(left) != 1 || !strings.HasPrefix(left[0], stagingPrefix) {
		t.Fatalf("the child left %v, which proves nothing", left)
	}
	_, err := openTest(dir).List()
	must(t, err)
	same(t, "what is left", contents(t, dir), []string{})
}

func TestGetMLX_Refusals(t *testing.T) {
	t.Parallel()
	linux := hardware{os: "linux", arch: "amd64"}
	for name, c := range map[string]struct {
		hardware hardware
		options  GetOptions
		says     string
	}{
		"an Intel Mac":     {hardware{os: "darwin", arch: "amd64"}, GetOptions{}, "needs a Mac with an Apple processor"},
		"Windows":          {hardware{os: "windows", arch: "amd64"}, GetOptions{}, "not on windows: use llama.cpp"},
		"metal on Linux":   {linux, GetOptions{Variant: "metal"}, `no variant "metal" for linux/amd64; it has: cpu, cuda`},
		"the CPU of a Mac": {hardware{os: "darwin", arch: "arm64"}, GetOptions{Variant: "cpu"}, `no variant "cpu" for darwin/arm64; it has: metal`},
		"no version":       {linux, GetOptions{Version: "latest; rm"}, "is not a version of mlx-lm: give one like 0.31.3"},
		"a version range":  {linux, GetOptions{Version: "0.31.*"}, "is not a version of mlx-lm"},
		"releases":         {linux, GetOptions{Releases: "http://127.0.0.1:1"}, "a package index, not of releases"},
		"a path":           {linux, GetOptions{Index: "/mirror"}, `"/mirror" is not the address of a package index`},
		"an option of pip": {linux, GetOptions{Index: "--pre"}, `"--pre" is not the address of a package index`},
		"another engine's": {linux, GetOptions{Engine: LlamaCpp, Index: "http://127.0.0.1:1"}, "llama.cpp isn't a Python package"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "runtimes")
			s := openTest(dir)
			s.hardware = func(context.Context) hardware { return c.hardware }
			if c.options.Engine == "" {
				c.options.Engine = MLXLM
			}
			_, err := s.Get(t.Context(), c.options)
			contains(t, err, c.says)
			if _, err := os.Stat(dir); err == nil {
				same(t, "what is left", contents(t, dir), []string{})
			}
		})
	}
}

func TestGetMLX_ThatDoesNotStart(t *testing.T) {
	fakePython{start: "echo 'ImportError: libcuda.so.1: no such file' >&2; exit 1"}.put(t)
	dir := t.TempDir()
	_, err := openTest(dir).Get(t.Context(), GetOptions{Engine: MLXLM, Variant: "cuda"})
	contains(t, err, "mlx-lm 0.31.3, cuda: it doesn't start here", "libcuda.so.1: no such file", "To install it by hand:", "engine mlx_lm {\n    command ")
	same(t, "what is left", contents(t, dir), []string{})
}

func TestGetMLX_WithoutPythonSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	_, err := openTest(dir).Get(t.Context(), GetOptions{Engine: MLXLM})
	contains(t, err, "Python 3.10 or later", "brew install python", "apt install python3 python3-venv")
	if !errors.Is(err, venv.ErrNoPython) {
		t.Errorf("the error is a %T", err)
	}
	same(t, "what is left", contents(t, dir), []string{})
}

func TestChooseMLX(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hardware hardware
		want     string
		chosen   []string
	}{
		"a Mac":                         {hardware{os: "darwin", arch: "arm64"}, "", []string{"mlx-lm==1"}},
		"Linux":                         {hardware{os: "linux", arch: "arm64", vulkan: true}, "", []string{"mlx-lm[cpu]==1"}},
		"a GPU":                         {hardware{os: "linux", arch: "amd64", nvidia: &nvidia{cuda: dotted{12, 8}}}, "", []string{"mlx-lm[cuda12]==1", "mlx-lm[cpu]==1"}},
		"a GPU with a newer driver":     {hardware{os: "linux", arch: "amd64", nvidia: &nvidia{cuda: dotted{13, 1}}}, "cuda", []string{"mlx-lm[cuda13]==1"}},
		"a GPU whose driver is unknown": {hardware{os: "linux", arch: "amd64", nvidia: &nvidia{}}, "cuda", []string{"mlx-lm[cuda12]==1"}},
		"CUDA without a GPU":            {hardware{os: "linux", arch: "amd64"}, "cuda", []string{"mlx-lm[cuda12]==1"}},
		"the CPU":                       {hardware{os: "linux", arch: "amd64", nvidia: &nvidia{}}, "cpu", []string{"mlx-lm[cpu]==1"}},
	} {
		builds, err := c.hardware.chooseMLX(c.want)
		must(t, err)
		var chosen []string
		for _, b := range builds {
			chosen = append(chosen, b.requirement("1"))
		}
		same(t, name, chosen, c.chosen)
	}
}

func TestMLXReported(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"0.31.3\n": "0.31.3",
		"/x/mlx_lm/__init__.py:1: UserWarning: 1.2\n  warn()\n0.32.0.dev1+ab.c\r\n": "0.32.0.dev1+ab.c",
		"1.0\n0.31.3\n":  "0.31.3",
		"0.31.3/../..\n": "",
		"Python 3.12\n":  "",
		"":               "",
	} {
		same(t, output, mlxReported(output), want)
	}
}
