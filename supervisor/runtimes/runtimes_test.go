package runtimes

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// TestMain can also be a process that is killed in the middle of a Get: see startGet; or a part of a fakePython.
func TestMain(m *testing.M) {
	if url := os.Getenv("RUNTIMES_TEST_FETCH"); url != "" {
		_, err := http.Get(url)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if dir := os.Getenv("RUNTIMES_TEST_GET"); dir != "" {
		_, err := openTest(dir).Get(context.Background(), GetOptions{
			Engine: os.Getenv("RUNTIMES_TEST_ENGINE"), Releases: os.Getenv("RUNTIMES_TEST_RELEASES"),
		})
		fmt.Fprintln(os.Stderr, "the get was not killed:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// startGet starts a Get in a process of its own.
func startGet(t *testing.T, dir string, o GetOptions) *exec.Cmd {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "RUNTIMES_TEST_GET="+dir, "RUNTIMES_TEST_ENGINE="+o.Engine, "RUNTIMES_TEST_RELEASES="+o.Releases)
	must(t, child.Start())
	return child
}

// openTest opens a store on a machine without GPU or distribution packages.
func openTest(dir string) *Store {
	s := Open(dir, nil)
	s.hardware = func(context.Context) hardware { return hardware{os: "linux", arch: "amd64"} }
	s.packages = nil
	return s
}

// serverScript replaces llama-server. It lists devices.
func serverScript(build int, devices ...string) string {
	script := fmt.Sprintf("#!/bin/sh\necho 'version: 0.7.0 (build %d, commit test)' >&2\n", build)
	for _, device := range devices {
		script += fmt.Sprintf("case $* in *--list-devices*) echo '  %s: a device (100 MiB, 90 MiB free)' ;; esac\n", device)
	}
	return script
}

// entry is an entry of a test's archive.
type entry struct {
	name, content, link string
	hard                bool
	mode                int64
}

func tarGzip(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	writer := tar.NewWriter(zipped)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: 0o755, Size: int64(len(e.content)), Typeflag: tar.TypeReg, Linkname: e.link}
		switch {
		case e.hard:
			header.Typeflag = tar.TypeLink
		case e.link != "":
			header.Typeflag = tar.TypeSymlink
		case strings.HasSuffix(e.name, "/"):
			header.Typeflag = tar.TypeDir
		}
		if e.mode != 0 {
			header.Mode = e.mode
		}
		must(t, writer.WriteHeader(header))
		_, err := writer.Write([]byte(e.content))
		must(t, err)
	}
	must(t, writer.Close())
	must(t, zipped.Close())
	return archive.Bytes()
}

// goodArchive returns an archive with the project's structure.
func goodArchive(t *testing.T, build int, devices ...string) []byte {
	t.Helper()
	top := fmt.Sprintf("llama-b%d/", build)
	return tarGzip(t,
		entry{name: top},
		entry{name: top + "llama-server", content: serverScript(build, devices...)},
		entry{name: top + "libllama.so.0.7.0", content: "library"},
		entry{name: top + "libllama.so.0", link: "libllama.so.0.7.0"},
	)
}

// releases is a server with the releases API, which simulates faults.
type releases struct {
	server *httptest.Server
	base   string // the address it has once it is started
	begin  sync.Once
	tag    string
	files  map[string][]byte
	noted  map[string]map[string]any   // fields of an asset that are told otherwise than they are
	answer map[string]http.HandlerFunc // in place of a file

	mu    sync.Mutex
	asked []string
}

// requests returns the files requested since the last call.
func (r *releases) requests() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

func newReleases(t *testing.T, files map[string][]byte) *releases {
	t.Helper()
	r := &releases{
		tag: "b11669", files: files, noted: map[string]map[string]any{}, answer: map[string]http.HandlerFunc{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /latest", func(w http.ResponseWriter, _ *http.Request) { r.write(w, "v0.7.0", pointerName) })
	mux.HandleFunc("GET /tags/v0.7.0", func(w http.ResponseWriter, _ *http.Request) { r.write(w, "v0.7.0", pointerName) })
	mux.HandleFunc("GET /tags/"+r.tag, func(w http.ResponseWriter, _ *http.Request) {
		var names []string
		for name := range r.files {
			if name != pointerName {
				names = append(names, name)
			}
		}
		r.write(w, r.tag, names...)
	})
	mux.HandleFunc("GET /files/{name}", func(w http.ResponseWriter, request *http.Request) {
		name := request.PathValue("name")
		r.mu.Lock()
		r.asked = append(r.asked, request.URL.RequestURI())
		r.mu.Unlock()
		if answer := r.answer[name]; answer != nil {
			answer(w, request)
			return
		}
		if content, ok := r.files[name]; ok {
			_, _ = w.Write(content)
			return
		}
		http.NotFound(w, request)
	})
	r.files[pointerName] = []byte(r.tag + "\n")
	r.server = httptest.NewUnstartedServer(mux)
	r.base = "http://" + r.server.Listener.Addr().String()
	t.Cleanup(r.server.Close)
	return r
}

// start starts the server if it isn't running, and returns its address.
func (r *releases) start() string {
	r.begin.Do(r.server.Start)
	return r.base
}

// write sends a release in the form of GitHub's API.
func (r *releases) write(w http.ResponseWriter, tag string, names ...string) {
	var assets []map[string]any
	for _, name := range names {
		a := map[string]any{
			"name": name, "size": len(r.files[name]), "browser_download_url": r.base + "/files/" + name,
			"digest": fmt.Sprintf("sha256:%x", sha256.Sum256(r.files[name])),
		}
		maps.Copy(a, r.noted[name])
		assets = append(assets, a)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"tag_name": tag, "prerelease": true, "assets": assets})
}

// note overrides a property of an asset.
func (r *releases) note(name, field string, value any) {
	if r.noted[name] == nil {
		r.noted[name] = map[string]any{}
	}
	r.noted[name][field] = value
}

// blockHalfway stops the download of the CPU archive after its first half, until release is closed or the client disconnects.
func (r *releases) blockHalfway() (begun, release chan struct{}) {
	begun, release = make(chan struct{}, 8), make(chan struct{})
	content := r.files[cpuArchive]
	r.answer[cpuArchive] = func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(content[:len(content)/2])
		w.(http.Flusher).Flush()
		begun <- struct{}{}
		select {
		case <-release:
			_, _ = w.Write(content[len(content)/2:])
		case <-request.Context().Done():
		}
	}
	return begun, release
}

// installOf puts a runtime of an engine into a store. Its executable is "server".
func installOf(t *testing.T, dir, engine, version, variant string) string {
	t.Helper()
	m := manifest{Engine: engine, Version: version, Variant: variant, Executable: "server", FetchedAt: time.Now()}
	must(t, os.MkdirAll(filepath.Join(dir, m.name()), 0o755))
	executable(t, filepath.Join(dir, m.name()), "server")
	must(t, m.write(filepath.Join(dir, m.name())))
	return m.name()
}

// install puts a runtime of llama.cpp into a store without downloading it.
func install(t *testing.T, dir string, build int, variant string) string {
	t.Helper()
	m := manifest{Engine: LlamaCpp, Version: fmt.Sprintf("b%d", build), Variant: variant, Executable: "llama-server", FetchedAt: time.Now()}
	folder := filepath.Join(dir, m.name())
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.WriteFile(filepath.Join(folder, "llama-server"), []byte(serverScript(build)), 0o755))
	must(t, m.write(folder))
	return m.name()
}

// contents lists the entries of a folder except the store's lock.
func contents(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	names := []string{}
	for _, e := range entries {
		if e.Name() != storeLock {
			names = append(names, e.Name())
		}
	}
	return names
}

func names(list []Runtime) []string {
	all := []string{}
	for _, r := range list {
		if r.Source == Installed {
			all = append(all, r.Name)
		}
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func contains(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there was no error")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error doesn't say %q: %v", word, err)
		}
	}
}

func TestList_NewestFirstAndOnlyRuntimes(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	s := openTest(dir)
	for _, build := range []int{9999, 11669, 10001} {
		install(t, dir, build, "cpu")
	}
	must(t, os.Mkdir(filepath.Join(dir, "not-a-runtime"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "a-file"), nil, 0o644))
	must(t, os.Mkdir(filepath.Join(dir, "escapes"), 0o755))
	m := manifest{Engine: LlamaCpp, Version: "b1", Variant: "cpu", Executable: "../llama.cpp-b11669-cpu/llama-server"}
	must(t, m.write(filepath.Join(dir, "escapes")))
	must(t, os.Rename(filepath.Join(dir, install(t, dir, 12000, "cpu")), filepath.Join(dir, ".hidden")))

	list, err := s.List()
	must(t, err)
	same(t, "names", names(list), []string{"llama.cpp-b11669-cpu", "llama.cpp-b10001-cpu", "llama.cpp-b9999-cpu"})
}

func TestList_OfSeveralEngines(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	dir := t.TempDir()
	s := openTest(dir)
	for _, version := range []string{"0.9.0", "0.31.3", "20000.1", "0.31.10"} {
		installOf(t, dir, MLXLM, version, "cpu")
	}
	install(t, dir, 11669, "cpu")
	installOf(t, dir, "of-tomorrow", "1", "cpu")
	onPath := executable(t, bin, "mlx_lm.server")

	list, err := s.List()
	must(t, err)
	same(t, "names", names(list), []string{"llama.cpp-b11669-cpu", "mlx-lm-20000.1-cpu", "mlx-lm-0.31.10-cpu", "mlx-lm-0.31.3-cpu", "mlx-lm-0.9.0-cpu"})
	same(t, "last", list[len(list)-1], Runtime{Engine: MLXLM, Path: onPath, Source: OnPath})
}

func TestList_OfNoFolderMakesNone(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := filepath.Join(t.TempDir(), "runtimes")
	list, err := openTest(dir).List()
	must(t, err)
	if len(list) != 0 {
		t.Errorf("listed %v", list)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("listing made the folder: %v", err)
	}
}
