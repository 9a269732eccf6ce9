package server

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakepypi"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

// runtimeHome gives the command a home and a PATH of its own.
func runtimeHome(t *testing.T) (home, bin string) {
	t.Helper()
	home, bin = t.TempDir(), t.TempDir()
	t.Setenv("LMCADDY_HOME", home)
	t.Setenv("PATH", bin)
	return home, bin
}

// runRuntime runs `lmcaddy runtime` with arguments.
func runRuntime(t *testing.T, arguments ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	root := &cobra.Command{Use: "lmcaddy", SilenceUsage: true}
	cmd := &cobra.Command{Use: "runtime"}
	DefineRuntime(cmd)
	root.AddCommand(cmd)
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(append([]string{"runtime"}, arguments...))
	err = root.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// releaseServer has one release, with the same script as llama-server for every platform. It names a wrong checksum if
// wrong is true.
func releaseServer(t *testing.T, wrong bool) string {
	t.Helper()
	script := "#!/bin/sh\necho 'version: 0.7.0 (build 11669, commit test)' >&2\n"
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	writer := tar.NewWriter(zipped)
	if err := writer.WriteHeader(&tar.Header{Name: "llama-server", Mode: 0o755, Size: int64(len(script)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { _, err := writer.Write([]byte(script)); return err }, writer.Close, zipped.Close,
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256(archive.Bytes())
	if wrong {
		sum[0]++
	}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /latest", func(w http.ResponseWriter, _ *http.Request) {
		var assets []map[string]any
		for _, platform := range []string{"ubuntu-x64", "ubuntu-arm64", "macos-x64", "macos-arm64"} {
			name := "llama-b11669-bin-" + platform + ".tar.gz"
			assets = append(assets, map[string]any{
				"name": name, "size": archive.Len(), "digest": fmt.Sprintf("sha256:%x", sum), "browser_download_url": server.URL + "/" + name,
			})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"tag_name": "b11669", "assets": assets})
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive.Bytes()) })
	return server.URL
}

func TestRuntime_GetListSelectRemove(t *testing.T) {
	home, bin := runtimeHome(t)
	url := releaseServer(t, false)

	out, _, err := runRuntime(t, "ls")
	if err != nil || out != howToGet+"\n" {
		t.Errorf("ls of nothing: %q, %v", out, err)
	}
	out, _, err = runRuntime(t, "ls", "--json")
	if err != nil || out != "[]\n" {
		t.Errorf("ls --json of nothing: %q, %v", out, err)
	}

	out, errs, err := runRuntime(t, "get", "llama.cpp", "--releases", url)
	if err != nil {
		t.Fatal(err)
	}
	list := listedRuntimes(t)
	if len(list) != 1 {
		t.Fatalf("listed %+v", list)
	}
	got := list[0]
	if diff := cmp.Diff(got.Name+" is installed; it is selected.\n"+got.Path+"\n", out); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(errs, "fetching llama-b11669-bin-") {
		t.Errorf("no progress: %q", errs)
	}
	if !got.Selected || got.Version != "b11669" || !strings.HasPrefix(got.Path, filepath.Join(home, "runtimes", got.Name)) {
		t.Errorf("listed %+v", got)
	}

	out, _, err = runRuntime(t, "get", "llama.cpp", "--releases", url)
	if err != nil || !strings.Contains(out, "is already installed, nothing was replaced") {
		t.Errorf("got again: %q, %v", out, err)
	}

	onPath := filepath.Join(bin, "llama-server")
	if err := os.WriteFile(onPath, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, _, err = runRuntime(t, "ls")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Fields(strings.ReplaceAll(line, "official release b11669", "release")))
	}
	if diff := cmp.Diff([][]string{
		{"SELECTED", "NAME", "VERSION", "VARIANT", "FROM", "PATH"},
		{"*", got.Name, "b11669", got.Variant, "release", got.Path},
		{"-", "-", "-", "PATH", onPath},
	}, rows); diff != "" {
		t.Error(diff)
	}

	if out, _, err = runRuntime(t, "remove", got.Name); err != nil || out != got.Name+" is removed.\n" {
		t.Errorf("remove: %q, %v", out, err)
	}
	if _, _, err = runRuntime(t, "select", got.Name); err == nil {
		t.Error("selected what is removed")
	}
	if list := listedRuntimes(t); len(list) != 1 || list[0].Source != runtimes.OnPath {
		t.Errorf("after the removal: %+v", list)
	}
}

func listedRuntimes(t *testing.T) []runtimes.Runtime {
	t.Helper()
	out, _, err := runRuntime(t, "ls", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var list []runtimes.Runtime
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// A change is told as JSON, too: the runtime as it is afterwards, or was before its removal.
func TestRuntime_ChangesAsJSON(t *testing.T) {
	runtimeHome(t)
	if _, _, err := runRuntime(t, "get", "llama.cpp", "--releases", releaseServer(t, false)); err != nil {
		t.Fatal(err)
	}
	name := listedRuntimes(t)[0].Name
	for _, change := range []string{"select", "remove"} {
		out, _, err := runRuntime(t, change, name, "--json")
		if err != nil {
			t.Fatal(err)
		}
		var got runtimes.Runtime
		if err := json.Unmarshal([]byte(out), &got); err != nil || got.Name != name || got.Path == "" || got.Selected != (change == "select") {
			t.Errorf("%s: %s, error %v", change, out, err)
		}
	}
}

func TestRuntime_GetIfMissing(t *testing.T) {
	home, bin := runtimeHome(t)
	if err := os.WriteFile(filepath.Join(bin, "llama-server"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, errs, err := runRuntime(t, "get", "llama.cpp", "--if-missing", "--releases", "http://127.0.0.1:0")
	if err != nil || out != "" || errs != "" {
		t.Errorf("one is there, but: %q, %q, %v", out, errs, err)
	}
	if entries, _ := os.ReadDir(home); len(entries) != 0 {
		t.Errorf("the home was touched: %v", entries)
	}

	t.Setenv("PATH", t.TempDir())
	out, _, err = runRuntime(t, "get", "llama.cpp", "--if-missing", "--releases", releaseServer(t, false))
	if err != nil || !strings.Contains(out, "is installed; it is selected") {
		t.Errorf("none is there, but: %q, %v", out, err)
	}
}

func TestRuntime_GetMLX(t *testing.T) {
	home := t.TempDir()
	t.Setenv("LMCADDY_HOME", home) // and a PATH with Python
	index := fakepypi.New(t, append(fakepypi.MLX(), fakepypi.MLXLM("0.31.3", ""))...)
	out, errs, err := runRuntime(t, "get", "mlx-lm", "--index", index.URL)
	if err != nil {
		t.Fatalf("%v\n(tools/venv.sh installs Python)", err)
	}
	if !strings.Contains(errs, "fetching mlx_lm-0.31.3-py3-none-any.whl") {
		t.Errorf("no progress: %q", errs)
	}
	list := slices.DeleteFunc(listedRuntimes(t), func(r runtimes.Runtime) bool { return r.Source != runtimes.Installed })
	if len(list) != 1 {
		t.Fatalf("listed %+v", list)
	}
	got := list[0]
	command := filepath.Join(home, "runtimes", got.Name, "bin", "python3") + " -I -m mlx_lm server"
	if diff := cmp.Diff(got.Name+" is installed; it is selected.\n"+command+"\n", out); diff != "" {
		t.Error(diff)
	}
	if got.Engine != runtimes.MLXLM || got.Version != "0.31.3" || !got.Selected || !strings.HasPrefix(got.Name, "mlx-lm-0.31.3-") {
		t.Errorf("listed %+v", got)
	}
	if out, _, err = runRuntime(t, "ls"); err != nil || !strings.Contains(out, command) {
		t.Errorf("ls says %q, %v", out, err)
	}
	if out, errs, err = runRuntime(t, "get", "mlx-lm", "--if-missing", "--index", "http://127.0.0.1:1"); err != nil || out+errs != "" {
		t.Errorf("it is there, but: %q, %q, %v", out, errs, err)
	}
}

func TestRuntime_Errors(t *testing.T) {
	runtimeHome(t)
	for _, test := range []struct {
		name      string
		arguments []string
		says      []string
	}{
		{"unknown engine", []string{"get", "ollama"}, []string{`no engine "ollama"`, "llama.cpp", "mlx-lm"}},
		{"the name in the Caddyfile", []string{"get", "mlx_lm"}, []string{`no engine "mlx_lm"`, "mlx-lm      mlx_lm.server"}},
		{"no engine", []string{"get"}, []string{"name the engine to download", "llama.cpp   llama-server", "mlx-lm      mlx_lm.server"}},
		{"two engines", []string{"get", "llama.cpp", "mlx-lm"}, []string{"name one engine to download"}},
		{"releases of mlx-lm", []string{"get", "mlx-lm", "--releases", "http://127.0.0.1:1"}, []string{"give the address of a package index"}},
		{"index of llama.cpp", []string{"get", "llama.cpp", "--index", "http://127.0.0.1:1"}, []string{"llama.cpp isn't a Python package"}},
		{"version of mlx-lm", []string{"get", "mlx-lm", "--version", "b11669"}, []string{`"b11669" is not a version of mlx-lm`}},
		{"without Python", []string{"get", "mlx-lm"}, []string{"neither uv on PATH nor Python 3.10 or later", "python3-venv"}},
		{"select", []string{"select", "x"}, []string{`run "lmcaddy runtime get llama.cpp" first`}},
		{"remove outside", []string{"remove", "../models"}, []string{"can't be the name of a runtime"}},
		{"unknown variant", []string{"get", "llama.cpp", "--variant", "abacus", "--releases", releaseServer(t, false)}, []string{`no variant "abacus"`, "it has: "}},
		{"wrong checksum", []string{"get", "llama.cpp", "--releases", releaseServer(t, true)}, []string{"SHA-256", "To install it by hand:"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, errs, err := runRuntime(t, test.arguments...)
			if err == nil {
				t.Fatalf("no error; %q", out)
			}
			for _, word := range test.says {
				if !strings.Contains(errs, word) {
					t.Errorf("standard error doesn't say %q: %s", word, errs)
				}
			}
			if out != "" && test.name != "unknown command" {
				t.Errorf("standard output: %q", out)
			}
		})
	}
}

func TestOrMeant(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	list := []runtimes.Runtime{{Name: "llama.cpp-b11669-cpu"}, {Name: "on-path", Source: runtimes.OnPath}}
	for name, want := range map[string]string{
		"llama.cpp-b11669-cpp": "there is no runtime llama.cpp-b11669-cpp: did you mean llama.cpp-b11669-cpu?",
		"llama.cpp-b11669-cpu": "refused",
		"on-pat":               "refused",
	} {
		if err := orMeant(name, list, refused); err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestProgressLine_OfARuntime(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]runtimes.Progress{
		"fetching a.zip  1.0 MB of 20 MB, 5%\n": {Doing: "fetching a.zip", Done: 1e6, Total: 20e6, Percent: 5},
		"fetching b.zip  3.0 MB\n":              {Doing: "fetching b.zip", Done: 3e6},
		"reading lists  50%\n":                  {Doing: "reading lists", Percent: 50},
		"unpacking\n":                           {Doing: "unpacking"},
	} {
		var out bytes.Buffer
		line := terminal.NewProgress(&out)
		showProgress(line, p)
		line.End()
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}
