package runtimes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	cpuArchive    = "llama-b11669-bin-ubuntu-x64.tar.gz"
	vulkanArchive = "llama-b11669-bin-ubuntu-vulkan-x64.tar.gz"
	cudaArchive   = "llama-b11669-bin-ubuntu-cuda-12.8-x64.tar.gz"
	cudaLibs      = "cudart-llama-b11669-bin-ubuntu-cuda-12.8-x64.tar.gz"
)

func TestGet_InstallsAndSelects(t *testing.T) {
	t.Parallel()
	r := newReleases(t, map[string][]byte{cpuArchive: goodArchive(t, 11669)})
	dir := filepath.Join(t.TempDir(), "home", "runtimes")
	var told []string
	got, err := openTest(dir).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: r.start(), Progress: func(p Progress) {
		if len(told) == 0 || told[len(told)-1] != p.Doing {
			told = append(told, p.Doing)
		}
		if p.Total > 0 && p.Done == p.Total && p.Percent != 100 {
			t.Errorf("the whole is %v%%", p.Percent)
		}
	}})
	must(t, err)
	name := "llama.cpp-b11669-cpu"
	path := filepath.Join(dir, name, "llama-b11669", "llama-server")
	same(t, "runtime", got, Runtime{
		Name: name, Engine: LlamaCpp, Version: "b11669", Variant: "cpu", Origin: "official release b11669",
		Path: path, Source: Installed, Selected: true,
	})
	same(t, "folder", contents(t, dir), []string{name, "selected"})
	same(t, "steps", told, []string{
		"asking for the release's files", "fetching " + cpuArchive, "unpacking " + cpuArchive, "checking that it starts",
	})
	same(t, "requests", r.requests(), []string{"/files/" + pointerName, "/files/" + cpuArchive})
	output, err := exec.Command(path, "--version").CombinedOutput()
	must(t, err)
	same(t, "output", string(output), "version: 0.7.0 (build 11669, commit test)\n")
	library, err := os.ReadFile(filepath.Join(filepath.Dir(path), "libllama.so.0"))
	if err != nil || string(library) != "library" {
		t.Errorf("the library isn't beside the executable: %q, %v", library, err)
	}
}

func TestGet_AgainReplacesNothing(t *testing.T) {
	t.Parallel()
	r := newReleases(t, map[string][]byte{cpuArchive: goodArchive(t, 11669)})
	dir := t.TempDir()
	other := install(t, dir, 10000, "cpu")
	s := openTest(dir)
	must(t, s.Select(other))
	first, err := s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: r.start()})
	must(t, err)
	if first.Already || first.Selected {
		t.Errorf("got %+v", first)
	}
	mark := filepath.Join(filepath.Dir(first.Path), "mark")
	must(t, os.WriteFile(mark, nil, 0o644))
	r.requests() // those of the first
	second, err := s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: r.start(), Version: "v0.7.0"})
	must(t, err)
	if !second.Already || second.Path != first.Path {
		t.Errorf("got %+v", second)
	}
	same(t, "requests", r.requests(), []string{"/files/" + pointerName})
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("it was replaced: %v", err)
	}
	same(t, "selection", s.selection(llamaCpp), other)
}

func TestGet_SelectsWhenTheSelectedOneIsGone(t *testing.T) {
	t.Parallel()
	r := newReleases(t, map[string][]byte{cpuArchive: goodArchive(t, 11669)})
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "selected"), []byte("llama.cpp-b1-cpu\n"), 0o644))
	got, err := openTest(dir).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: r.start(), Version: "11669"})
	must(t, err)
	if !got.Selected {
		t.Error("it isn't selected")
	}
}

func TestGet_CUDALibrariesComeBesideTheEngine(t *testing.T) {
	t.Parallel()
	r := newReleases(t, map[string][]byte{
		cpuArchive:  goodArchive(t, 11669),
		cudaArchive: goodArchive(t, 11669, "CUDA0"),
		cudaLibs: tarGzip(t, entry{name: "cudart/libcudart.so.12.8.90", content: "runtime"},
			entry{name: "cudart/libcudart.so.12", link: "libcudart.so.12.8.90"}, entry{name: "cudart/LICENSE", content: "text"}),
	})
	s := openTest(t.TempDir())
	s.hardware = func(context.Context) hardware {
		return hardware{os: "linux", arch: "amd64", nvidia: &nvidia{cuda: dotted{12, 8}}}
	}
	got, err := s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: r.start()})
	must(t, err)
	same(t, "name", got.Name, "llama.cpp-b11669-cuda")
	text, err := os.ReadFile(filepath.Join(filepath.Dir(got.Path), "libcudart.so.12"))
	if err != nil || string(text) != "runtime" {
		t.Errorf("CUDA's library: %q, %v", text, err)
	}
}

// Without a GPU, an engine for one would compute on the processor, and nobody would know.
func TestGet_TriesTheNextVariantWhenOneFindsNoGPU(t *testing.T) {
	t.Parallel()
	for devices, want := range map[string]string{"Vulkan0": "vulkan", "": "cpu", "BLAS": "cpu", "CPU": "cpu"} {
		r := newReleases(t, map[string][]byte{cpuArchive: goodArchive(t, 11669), vulkanArchive: goodArchive(t, 11669, devices)})
		s, log := openTest(t.TempDir()), &bytes.Buffer{}
		s.log = slog.New(slog.NewTextHandler(log, nil))
		s.hardware = func(context.Context) hardware { return hardware{os: "linux", arch: "amd64", gpu: true, vulkan: true} }
		address := r.start()
		got, err := s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: address})
		must(t, err)
		same(t, "variant with the device "+devices, got.Variant, want)
		same(t, "it says so", strings.Contains(log.String(), "it finds no GPU that it can use"), want == "cpu")

		got, err = s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: address, Variant: "vulkan"})
		must(t, err)
		same(t, "variant that was asked for", got.Variant, "vulkan")
		same(t, "it says why it can't be used", strings.Contains(log.String(), "installed, since you asked for it"), want == "cpu")
	}
}

func TestGet_TriesTheNextVariantWhenOneDoesNotStart(t *testing.T) {
	t.Parallel()
	broken := tarGzip(t, entry{name: "llama-server", content: "#!/bin/sh\necho 'libvulkan.so.1: not found' >&2\nexit 127\n"})
	r := newReleases(t, map[string][]byte{cpuArchive: goodArchive(t, 11669), vulkanArchive: broken})
	withGPU := func(context.Context) hardware { return hardware{os: "linux", arch: "amd64", vulkan: true} }

	s := openTest(t.TempDir())
	s.hardware = withGPU
	got, err := s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: r.start()})
	must(t, err)
	same(t, "variant", got.Variant, "cpu")

	dir := t.TempDir()
	s = openTest(dir)
	s.hardware = withGPU
	_, err = s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: r.start(), Variant: "vulkan"})
	contains(t, err, "vulkan: it doesn't start here", "libvulkan.so.1: not found")
	same(t, "what is left", contents(t, dir), []string{})
}

// A failure has a reason, and leaves nothing in the store or its parent.
func TestGet_Faults(t *testing.T) {
	t.Parallel()
	good := goodArchive(t, 11669)
	for _, test := range []struct {
		name    string
		archive []byte
		fault   func(*releases)
		options GetOptions
		stalls  bool
		says    []string
	}{
		{name: "no such release", options: GetOptions{Version: "b1"}, says: []string{"there is no release b1"}},
		{name: "not a version", options: GetOptions{Version: "../x"}, says: []string{"not a version"}},
		{name: "no such variant", options: GetOptions{Variant: "cuda"}, says: []string{`no variant "cuda" for linux/amd64; it has: cpu`}},
		{
			name: "wrong checksum", fault: func(r *releases) { r.note(cpuArchive, "digest", "sha256:"+strings.Repeat("ab", 32)) },
			says: []string{"official release b11669, cpu", "SHA-256", "abab", "To install it by hand"},
		},
		{
			name: "no checksum", fault: func(r *releases) { r.note(cpuArchive, "digest", nil) },
			says: []string{"no SHA-256 checksum for " + cpuArchive},
		},
		{
			name: "other checksum", fault: func(r *releases) { r.note(cpuArchive, "digest", "md5:d41d8cd98f00b204e9800998ecf8427e") },
			says: []string{"no SHA-256 checksum for " + cpuArchive},
		},
		{
			name: "pointer with a wrong checksum", fault: func(r *releases) { r.note(pointerName, "digest", "sha256:"+strings.Repeat("ab", 32)) },
			says: []string{pointerName, "another checksum"},
		},
		{
			name: "pointer to elsewhere", fault: func(r *releases) { r.files[pointerName] = []byte("../../other") },
			says: []string{"holds no build's tag"},
		},
		{name: "archive is gone", fault: func(r *releases) { r.answer[cpuArchive] = http.NotFound }, says: []string{"404 Not Found"}},
		{name: "server is broken", fault: func(r *releases) {
			r.answer[cpuArchive] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
		}, says: []string{"502 Bad Gateway"}},
		{name: "truncated", fault: func(r *releases) {
			r.answer[cpuArchive] = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(len(good)))
				_, _ = w.Write(good[:len(good)/2])
			}
		}, says: []string{"fetching " + cpuArchive, "unexpected EOF"}},
		{name: "shortened", fault: func(r *releases) {
			r.answer[cpuArchive] = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(good[:len(good)/2]) }
		}, says: []string{"SHA-256"}},
		{name: "stalls", fault: func(r *releases) { r.blockHalfway() }, stalls: true, says: []string{"no more bytes arrived"}},
		{name: "stalls at once", fault: func(r *releases) {
			r.answer[cpuArchive] = func(w http.ResponseWriter, request *http.Request) {
				w.(http.Flusher).Flush()
				<-request.Context().Done()
			}
		}, stalls: true, says: []string{"no more bytes arrived"}},
		{
			name: "odd address", fault: func(r *releases) { r.note(cpuArchive, "browser_download_url", "file:///etc/passwd") },
			says: []string{"won't be fetched"},
		},
		{
			name: "address in go-getter's own form", fault: func(r *releases) { r.note(cpuArchive, "browser_download_url", "git::"+r.base+"/x") },
			says: []string{"won't be fetched"},
		},
		{
			name: "address of a part", fault: func(r *releases) { r.note(cpuArchive, "browser_download_url", r.base+"/files//x") },
			says: []string{"won't be fetched"},
		},
		{name: "not an archive", archive: []byte("hello"), says: []string{"unpacking " + cpuArchive}},
		{name: "nothing in it", archive: tarGzip(t, entry{name: "README", content: "hello"}), says: []string{"there is no llama-server in it"}},
		{
			name: "entry outside", archive: tarGzip(t, entry{name: "llama-server", content: serverScript(1)}, entry{name: "../x", content: "x"}),
			says: []string{"refused", `"../x"`},
		},
		{name: "tells no version", archive: tarGzip(t, entry{name: "llama-server", content: "#!/bin/sh\necho hello\n"}), says: []string{"told no version", "hello"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.archive == nil {
				test.archive = good
			}
			r := newReleases(t, map[string][]byte{cpuArchive: test.archive})
			if test.fault != nil {
				test.fault(r)
			}
			parent := t.TempDir()
			s := openTest(filepath.Join(parent, "runtimes"))
			if test.stalls {
				s.stall = 50 * time.Millisecond
			}
			test.options.Engine, test.options.Releases = LlamaCpp, r.start()
			_, err := s.Get(t.Context(), test.options)
			contains(t, err, test.says...)
			if len(contents(t, parent)) > 0 { // else it was refused before anything was made
				same(t, "beside the store", contents(t, parent), []string{"runtimes"})
				same(t, "what is left", contents(t, s.dir), []string{})
			}
		})
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	official, local := newRemote("", 0), newRemote("http://127.0.0.1:8080/releases/", 0)
	for _, test := range []struct {
		from    *remote
		address string
		fine    bool
	}{
		{official, "https://host.example/a/b.zip", true},
		{official, "http://host.example/a/b.zip", false},
		{local, "http://host.example/a/b.zip", true},
		{local, "https://host.example/a/b.zip", true},
		{local, "ftp://host.example/a/b.zip", false},
		{official, "https:///a/b.zip", false},
		{official, "https://host.example/a//b.zip", false},
		{official, "https://host.example/a/b.zip?archive=false", false},
		{official, "git::https://host.example/a/b.zip", false},
		{official, "/etc/passwd", false},
	} {
		if err := test.from.checkURL(test.address); (err == nil) != test.fine {
			t.Errorf("from %s, %s: %v", test.from.base, test.address, err)
		}
	}
}

func TestGet_FollowsRedirects(t *testing.T) {
	t.Parallel()
	r := newReleases(t, map[string][]byte{cpuArchive: goodArchive(t, 11669), "elsewhere": goodArchive(t, 11669)})
	r.answer[cpuArchive] = func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, "/files/elsewhere", http.StatusFound)
	}
	_, err := openTest(t.TempDir()).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: r.start()})
	must(t, err)
	same(t, "requests", r.requests()[1:], []string{"/files/" + cpuArchive, "/files/elsewhere"})
}

func TestGet_OtherEngine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "runtimes")
	_, err := openTest(dir).Get(t.Context(), GetOptions{Engine: "mlx_lm"})
	contains(t, err, `"mlx_lm" can't be fetched, only llama.cpp and mlx-lm can`)
}

func TestGet_CancelledLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newReleases(t, map[string][]byte{cpuArchive: goodArchive(t, 11669)})
	begun, _ := r.blockHalfway()
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	go func() {
		<-begun
		cancel()
	}()
	_, err := openTest(dir).Get(ctx, GetOptions{Engine: LlamaCpp, Releases: r.start()})
	contains(t, err, "interrupted", "nothing was installed")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error isn't the context's: %v", err)
	}
	same(t, "what is left", contents(t, dir), []string{})
}

func TestGet_StagingOfALiveGetIsKept(t *testing.T) {
	t.Parallel()
	r := newReleases(t, map[string][]byte{cpuArchive: goodArchive(t, 11669)})
	begun, release := r.blockHalfway()
	dir := t.TempDir()
	done := make(chan error, 1)
	go func() {
		_, err := openTest(dir).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: r.start()})
		done <- err
	}()
	<-begun
	s := openTest(dir)
	_, err := s.List()
	must(t, err)
	contains(t, s.Remove(install(t, dir, 10000, "cpu")+"x"), "there is no runtime")
	stage, err := s.newStaging(t.Context())
	must(t, err)
	stage.discard()
	left, _ := filepath.Glob(filepath.Join(dir, stagingPrefix+"*"))
	if len(left) != 1 {
		t.Errorf("staging folders: %v", left)
	}
	close(release)
	must(t, <-done)
}

func TestGet_KilledLeavesNothingForLong(t *testing.T) {
	t.Parallel()
	r := newReleases(t, map[string][]byte{cpuArchive: goodArchive(t, 11669)})
	begun, _ := r.blockHalfway()
	dir := t.TempDir()
	child := startGet(t, dir, GetOptions{Engine: LlamaCpp, Releases: r.start()})
	<-begun
	must(t, child.Process.Kill())
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended well")
	}
	if left := contents(t, dir); len(left) != 1 || !strings.HasPrefix(left[0], stagingPrefix) {
		t.Fatalf("the child left %v, which proves nothing", left)
	}
	list, err := openTest(dir).List()
	must(t, err)
	same(t, "runtimes", names(list), []string{})
	same(t, "what is left", contents(t, dir), []string{})
}

func TestGet_TwoAtOnceInstallOne(t *testing.T) {
	t.Parallel()
	archive := goodArchive(t, 11669)
	r := newReleases(t, map[string][]byte{cpuArchive: archive})
	var both sync.WaitGroup // both download before either installs
	both.Add(2)
	r.answer[cpuArchive] = func(w http.ResponseWriter, _ *http.Request) {
		both.Done()
		both.Wait()
		_, _ = w.Write(archive)
	}
	r.files[pointerName] = []byte("b11669")
	dir := t.TempDir()
	already := make(chan bool, 2)
	for range 2 {
		go func() {
			got, err := openTest(dir).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: r.start(), Version: "b11669"})
			if err != nil {
				t.Error(err)
			}
			already <- got.Already
		}()
	}
	if first, second := <-already, <-already; first == second {
		t.Errorf("installed already: %v and %v", first, second)
	}
	same(t, "folder", contents(t, dir), []string{"llama.cpp-b11669-cpu", "selected"})
}
