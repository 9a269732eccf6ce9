package runtimes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/closedport"
)

// Fakes of the tools of a Debian-family system, which record their calls. apt-get has the packages in the suite $SUITE.
// dpkg-deb unpacks a tree in which the loader records how it is called.
var debianTools = map[string]string{
	"apt-config": `printf "LIST='%s'\nPARTS='%s'\n" "$ETC/sources.list" "$ETC/sources.list.d/"`,
	"dpkg":       `echo riscv64`,
	"apt-get": `
echo "apt-get $*" >> "$LOG"
for word; do case $word in -c=*) conf=${word#-c=};; Dir::Etc::sourceparts=*) sources=${word#*=};; esac; done
[ "$(id -u)" ] && grep -q '^#clear APT::Update;$' "$conf" || { echo 'E: the hooks would run' >&2; exit 100; }
cp "$sources"/*.sources "$LOG.sources"
echo 'dlstatus:1:50.0000:Retrieving file 1 of 2'
grep -q "^Suites: $SUITE$" "$sources"/*.sources || { echo 'E: Failed to fetch the suite' >&2; exit 100; }
case " $* " in *' download '*)
	[ -z "$HANG" ] || { read never < "$HANG.never" & echo $$ $! > "$HANG"; wait; }
	case " $* $WITHOUT" in *' libggml0-backend-vulkan '*' without-vulkan') echo 'E: Unable to locate package' >&2; exit 100; esac
	for package in ${*##* download }; do echo "$package" > "$package.deb"; done
esac`,
	"apt-cache": `
case " $* " in
*' show '*' libcudart12 '*) printf 'Package: libcudart12\nVersion: 12.4.127~12.4.1-8\n'; exit;;
*' show '*' libggml0-backend-rpc '*) [ "$WITHOUT" != unknown-rpc ] || { echo 'E: No packages found' >&2; exit 100; };;
*' show '*' libggml0-backend-vulkan '*) [ "$WITHOUT" != unknown-vulkan ] || { echo 'E: No packages found' >&2; exit 100; };;
esac
case " $* " in
*' show '*) printf 'Package: llama.cpp-tools\nVersion: %s\n' "${VERSION:-0.7.0-1}"; exit;;
esac
printf '%s\n  Depends: %s\n' llama.cpp-tools libllama0 libllama0 debconf \
	libggml0-backend-vulkan libvulkan1 libggml0-backend-vulkan libllama0 \
	libggml0-backend-cuda libcudart12 libggml0-backend-cuda libcuda1 libcuda1 libnvidia-x`,
	"dpkg-deb": `
[ "$1" = -x ] || exit 2
lib=$3/usr/lib/riscv64-linux-gnu
mkdir -p "$3/usr/bin" "$lib/ggml/backends0" "$lib/llama"
package=$(cat "$2")
if [ $package = llama.cpp-tools ]; then
	touch "$3/usr/bin/llama-server"
elif [ $package = libggml0-backend-cuda ]; then
	cp "$CUDA_BACKEND" "$lib/ggml/backends0/libggml-cuda.so"
elif [ ${package#libggml0-backend-} != $package ]; then
	touch "$lib/ggml/backends0/libggml-${package#libggml0-backend-}.so"
elif [ $package = libopenblas0-pthread ]; then
	mkdir -p "$lib/openblas-pthread"
	touch "$lib/openblas-pthread/libblas.so.3"
else
	touch "$lib/ggml/backends0/libggml-cpu-x.so"
	printf '#!/bin/sh\necho "version: 0.7.0 (build 11669, commit Debian)" >&2\nprintf "%%s\\n" "$@"\ncase $* in *--list-devices*) echo "$GGML_TEST_DEVICES" ;; esac\n' > "$lib/ld-linux-riscv64-lp64d.so.1"
	chmod 755 "$lib/ld-linux-riscv64-lp64d.so.1"
fi`,
}

// debianMachine makes this process use the fake tools, and none of the real machine's configuration.
func debianMachine(t *testing.T, suite string) (log string) {
	t.Helper()
	bin, etc := t.TempDir(), t.TempDir()
	for name, text := range debianTools {
		must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	must(t, os.Mkdir(filepath.Join(etc, "sources.list.d"), 0o755))
	for name, text := range map[string]string{
		"sources.list":                     "deb http://mirror.example/debian bookworm main\n",
		"sources.list.d/vendor.list":       "deb http://vendor.example/x vendor main\n",
		"sources.list.d/second.sources":    "Types: deb\nURIs: http://second.example/debian\nSuites: trixie\nComponents: main\n",
		"sources.list.d/third.sources.bak": "Types: deb\nURIs: http://third.example/debian\nSuites: trixie\nComponents: main\n",
	} {
		must(t, os.WriteFile(filepath.Join(etc, name), []byte(text), 0o644))
	}
	log = filepath.Join(t.TempDir(), "log")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	for name, value := range map[string]string{"ETC": etc, "LOG": log, "SUITE": suite, "HANG": "", "WITHOUT": "", "GGML_TEST_DEVICES": "", "CUDA_BACKEND": ""} {
		t.Setenv(name, value)
	}
	return log
}

// unreachable is a URL for releases at which no server listens.
func unreachable(t *testing.T) string {
	t.Helper()
	return "http://" + closedport.Address(t)
}

func openDebian(dir string) *Store {
	s := openTest(dir)
	s.packages = distributionPackages()
	return s
}

func TestGet_FromDebianPackages(t *testing.T) {
	log := debianMachine(t, "sid") // forky doesn't have it
	dir := t.TempDir()
	var percents []float64
	got, err := openDebian(dir).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t), Progress: func(p Progress) {
		if strings.HasPrefix(p.Doing, "reading the package lists") {
			percents = append(percents, p.Percent)
		}
	}})
	must(t, err)
	same(t, "runtime", got, Runtime{
		Name: "llama.cpp-b11669-cpu", Engine: LlamaCpp, Version: "b11669", Variant: "cpu", Origin: "Debian's packages, sid",
		Path: filepath.Join(dir, "llama.cpp-b11669-cpu/bin/llama-server"), Source: Installed, Selected: true,
	})
	same(t, "percents", percents, []float64{50, 50})
	same(t, "folder", contents(t, dir), []string{"llama.cpp-b11669-cpu", "selected"})

	sources, err := os.ReadFile(log + ".sources")
	must(t, err)
	const rest = "Suites: sid\nComponents: main\nTargets: Packages\n"
	same(t, "sources", string(sources), "Types: deb\nURIs: http://mirror.example/debian\n"+rest+"\nTypes: deb\nURIs: http://second.example/debian\n"+rest)
	calls, err := os.ReadFile(log)
	must(t, err)
	for line := range strings.Lines(string(calls)) {
		for word := range strings.FieldsSeq(line) {
			if name, value, ok := strings.Cut(word, "=/"); ok && !strings.HasPrefix("/"+value, dir+"/"+stagingPrefix) && value != "dev/null" {
				t.Errorf("apt may write to %s=/%s", name, value)
			}
		}
		for _, word := range []string{"Dir::State=", "Dir::State::lists=", "Dir::State::status=", "Dir::Cache=", "Dir::Cache::archives=", "APT::Architectures::=riscv64"} {
			if !strings.Contains(line, word) {
				t.Errorf("apt isn't told %s: %s", word, line)
			}
		}
	}
	if lines := strings.Split(string(calls), "\n"); !strings.HasSuffix(lines[len(lines)-2], " download llama.cpp-tools libggml0-backend-rpc libllama0") {
		t.Errorf("apt was called so:\n%s", calls)
	}
}

// TestGet_DebianPackagesAreFetchedOnce: an installed package is recognized by its version. Another version of the package with
// the same build is downloaded once.
func TestGet_DebianPackagesAreFetchedOnce(t *testing.T) {
	log := debianMachine(t, "forky")
	dir := t.TempDir()
	for i, tt := range []struct {
		version   string
		isFetched bool
	}{{"0.7.0-1", true}, {"0.7.0-1", false}, {"0.7.0-2", true}, {"0.7.0-2", false}} {
		t.Setenv("VERSION", tt.version)
		if err := os.Remove(log); err != nil && i > 0 {
			t.Fatal(err)
		}
		got, err := openDebian(dir).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t)})
		must(t, err)
		calls, err := os.ReadFile(log)
		must(t, err)
		if isFetched := strings.Contains(string(calls), " download "); isFetched != tt.isFetched || got.Already != (i > 0) || !got.Selected {
			t.Errorf("%d, version %s: fetched %v, %+v", i, tt.version, isFetched, got)
		}
		same(t, "folder", contents(t, dir), []string{"llama.cpp-b11669-cpu", "selected"})
	}
	must(t, os.RemoveAll(filepath.Join(dir, "llama.cpp-b11669-cpu")))
	got, err := openDebian(dir).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t)})
	must(t, err)
	same(t, "it is there again", got.Already, false)
}

// llama-server finds the backend for --rpc beside its loader. A suite that doesn't have it will do.
func TestGet_DebianRPCBackend(t *testing.T) {
	for without, want := range map[string]bool{"": true, "unknown-rpc": false} {
		debianMachine(t, "forky")
		t.Setenv("WITHOUT", without)
		dir := t.TempDir()
		got, err := openDebian(dir).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t)})
		must(t, err)
		_, err = os.Stat(filepath.Join(dir, got.Name, "usr/lib/riscv64-linux-gnu/libggml-rpc.so"))
		same(t, "it has the backend "+without, err == nil, want)
	}
}

func TestDebianScript_FindsItsTreeAfterAMove(t *testing.T) {
	debianMachine(t, "forky")
	dir := t.TempDir()
	got, err := openDebian(dir).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t)})
	must(t, err)
	moved := filepath.Join(t.TempDir(), "moved to here")
	must(t, os.Rename(filepath.Join(dir, got.Name), moved))
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(filepath.Join(moved, "bin/llama-server"), link))
	output, err := exec.Command(link, "--model", "a b.gguf").Output()
	must(t, err)
	lib := filepath.Join(moved, "usr/lib/riscv64-linux-gnu")
	same(t, "arguments of the loader", strings.Split(strings.TrimSpace(string(output)), "\n"), []string{
		"--inhibit-cache", "--library-path", lib + ":" + lib + "/llama", filepath.Join(moved, "usr/bin/llama-server"), "--model", "a b.gguf",
	})
	backend, err := filepath.EvalSymlinks(filepath.Join(lib, "libggml-cpu-x.so"))
	must(t, err)
	same(t, "backend beside the loader", backend, filepath.Join(lib, "ggml/backends0/libggml-cpu-x.so"))
}

func TestGet_DebianIsNotAskedForWhatItCannotGive(t *testing.T) {
	log := debianMachine(t, "forky")
	r := newReleases(t, map[string][]byte{cpuArchive: goodArchive(t, 11669)})
	r.note(cpuArchive, "digest", "sha256:"+strings.Repeat("ab", 32))
	for name, options := range map[string]GetOptions{
		"version":        {Version: "b11000", Releases: unreachable(t)},
		"variant":        {Variant: "sycl", Releases: unreachable(t)},
		"wrong checksum": {Releases: r.start()},
	} {
		options.Engine = LlamaCpp
		if got, err := openDebian(t.TempDir()).Get(t.Context(), options); err == nil {
			t.Errorf("%s: got %s", name, got.Name)
		}
		if _, err := os.Stat(log); err == nil {
			t.Errorf("%s: apt was called", name)
		}
	}
}

func TestGet_DebianWhenTheReleaseHasNothingThatRuns(t *testing.T) {
	debianMachine(t, "forky")
	old := tarGzip(t, entry{name: "llama-server", content: "#!/bin/sh\necho \"version GLIBC_2.38 not found\" >&2\nexit 1\n"})
	r := newReleases(t, map[string][]byte{cpuArchive: old})
	got, err := openDebian(t.TempDir()).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: r.start(), Variant: "cpu"})
	must(t, err)
	same(t, "origin", got.Origin, "Debian's packages, forky")
}

func TestGet_SaysAllThatWasTried(t *testing.T) {
	debianMachine(t, "none")
	dir := t.TempDir()
	_, err := openDebian(dir).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t)})
	contains(t, err, "\n  official release: ", "connection refused", "\n  distribution's packages, cpu: forky: apt-get: E: Failed to fetch the suite; apt-get: E:",
		"; sid: apt-get: E:", "brew install llama.cpp", "winget install llama.cpp", "apt install llama.cpp-tools", "nix", "/releases",
		"on PATH", "engine llama_server {")
	same(t, "what is left", contents(t, dir), []string{})

	t.Setenv("PATH", t.TempDir())
	_, err = openDebian(dir).Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t)})
	contains(t, err, "distribution's packages: not a Debian-family system: there is no apt-get")
}

func TestGet_CancelEndsApt(t *testing.T) {
	debianMachine(t, "forky")
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, syscall.Mkfifo(fifo, 0o600))
	must(t, syscall.Mkfifo(fifo+".never", 0o600))
	t.Setenv("HANG", fifo)
	ctx, cancel := context.WithCancel(t.Context())
	processes := make(chan []string, 1)
	go func() {
		ids, err := os.ReadFile(fifo) // waits until apt-get has started what never ends
		if err != nil {
			t.Error(err)
		}
		cancel()
		processes <- strings.Fields(string(ids))
	}()
	dir := t.TempDir()
	_, err := openDebian(dir).Get(ctx, GetOptions{Engine: LlamaCpp, Releases: unreachable(t)})
	contains(t, err, "interrupted")
	same(t, "what is left", contents(t, dir), []string{})
	for _, id := range <-processes {
		stat, err := os.ReadFile("/proc/" + id + "/stat")
		if err == nil && !strings.Contains(string(stat), ") Z ") { // dead, but not yet collected by its new parent
			t.Errorf("apt-get, or what it started, still runs: %s", stat)
			if number, err := strconv.Atoi(id); err == nil {
				_ = syscall.Kill(number, syscall.SIGKILL)
			}
		}
	}
}

func TestMakeStartable_NeedsAWholeTree(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	steps := []struct{ file, missing string }{
		{"usr/bin/llama-server", "no usr/bin/llama-server"},
		{"usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "no dynamic loader"},
		{"usr/lib/x86_64-linux-gnu/ggml/backends0/libggml-cpu-x64.so", "no CPU backend"},
	}
	for _, step := range steps {
		_, err := makeStartable(root, variantCPU)
		contains(t, err, step.missing)
		must(t, os.MkdirAll(filepath.Join(root, filepath.Dir(step.file)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, step.file), nil, 0o644))
	}
	script, err := makeStartable(root, variantCPU)
	must(t, err)
	must(t, checkExecutable(filepath.Join(root, script)))
}

func TestComplaint(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"Ign:1 x\nW: Failed to fetch a\nE: Some index files failed\nE: more\n": "E: Some index files failed",
		"W: Failed to fetch a\nW: b\n":                                         "W: Failed to fetch a",
		"dpkg-deb: error: broken\n":                                            "dpkg-deb: error: broken",
		"":                                                                     "invalid argument",
	} {
		if got := complaint(output, os.ErrInvalid); got != want {
			t.Errorf("%q: %q", output, got)
		}
	}
}
