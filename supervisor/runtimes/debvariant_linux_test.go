package runtimes

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const listedVulkan, listedCUDA = "  Vulkan0: a GPU (8192 MiB, 8000 MiB free)", "  CUDA0: a GPU (8192 MiB, 8000 MiB free)"

// downloads returns the packages that each call of apt downloaded, and the components of the archive that it was configured for last.
func downloads(t *testing.T, log string) (all []string, components string) {
	t.Helper()
	calls, err := os.ReadFile(log)
	must(t, err)
	for line := range strings.Lines(string(calls)) {
		if _, packages, ok := strings.Cut(strings.TrimSpace(line), " download "); ok {
			all = append(all, packages)
		}
	}
	sources, err := os.ReadFile(log + ".sources")
	must(t, err)
	_, rest, _ := strings.Cut(string(sources), "\nComponents: ")
	components, _, _ = strings.Cut(rest, "\n")
	return all, components
}

func TestGet_DebianVariantThatFitsTheHardware(t *testing.T) {
	const engine = "llama.cpp-tools libggml0-backend-rpc libllama0"
	const vulkan, cuda = "libggml0-backend-vulkan libvulkan1", "libggml0-backend-cuda libcudart12"
	const contrib = "main contrib non-free"
	ampere := cudaLibrary(t, cudaCode{dotted{8, 0}, true}, cudaCode{dotted{8, 6}, false})
	for _, test := range []struct {
		name               string
		gpu                bool
		nvidia             *nvidia
		devices, without   string
		want               string
		fetched            []string
		components, reason string
	}{
		{name: "none", want: "cpu", fetched: []string{engine}, components: "main"},
		{name: "a GPU", gpu: true, devices: listedVulkan, want: "vulkan", fetched: []string{engine, vulkan}, components: "main"},
		{
			name: "a GPU without a driver", gpu: true, want: "cpu", fetched: []string{engine, vulkan}, components: "main",
			reason: "variant=vulkan next=cpu error=\"it finds no GPU that it can use: it needs a Vulkan driver",
		},
		{
			name: "a package is missing", gpu: true, devices: listedVulkan, without: "without-vulkan", want: "cpu",
			fetched: []string{engine, vulkan, engine}, components: "main", reason: "Unable to locate package", // the last from sid
		},
		{
			name: "a package isn't known", gpu: true, devices: listedVulkan, without: "unknown-vulkan", want: "cpu",
			fetched: []string{engine}, components: "main", reason: "libggml0-backend-vulkan: apt-cache: E: No packages found",
		},
		{
			name: "NVIDIA's", nvidia: &nvidia{dotted{13, 0}, dotted{9, 0}}, devices: listedCUDA, want: "cuda",
			fetched: []string{engine, cuda}, components: contrib,
		},
		{
			name: "NVIDIA's, older than the code", nvidia: &nvidia{dotted{13, 0}, dotted{7, 5}}, devices: listedVulkan, want: "vulkan",
			fetched: []string{engine, cuda, engine, vulkan}, components: "main", reason: "no code for this GPU (compute capability 7.5)",
		},
		{
			name: "NVIDIA's with an old driver", nvidia: &nvidia{dotted{11, 4}, dotted{8, 6}}, devices: listedVulkan, want: "vulkan",
			fetched: []string{engine, vulkan}, components: "main", reason: "this machine's driver supports CUDA 11.4 at most",
		},
		{
			name: "NVIDIA's that can't be used", nvidia: &nvidia{dotted{13, 0}, dotted{8, 6}}, want: "cpu",
			fetched: []string{engine, cuda, engine, vulkan}, components: "main", reason: "variant=cuda next=vulkan error=\"it finds no GPU that it can use: it needs NVIDIA's driver",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls := debianMachine(t, "forky")
			t.Setenv("GGML_TEST_DEVICES", test.devices)
			t.Setenv("WITHOUT", test.without)
			t.Setenv("CUDA_BACKEND", ampere)
			s, log := openDebian(t.TempDir()), &bytes.Buffer{}
			s.log = slog.New(slog.NewTextHandler(log, nil))
			s.hardware = func(context.Context) hardware { return hardware{os: "linux", gpu: test.gpu, nvidia: test.nvidia} }
			got, err := s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t)})
			must(t, err)
			same(t, "variant", got.Variant, test.want)
			fetched, components := downloads(t, calls)
			same(t, "fetched", fetched, test.fetched)
			same(t, "components", components, test.components)
			if !strings.Contains(log.String(), test.reason) || (test.reason == "") != (log.Len() == 0) {
				t.Errorf("it says %q, want %q", log, test.reason)
			}
		})
	}
}

func TestGet_DebianVariantThatWasAskedFor(t *testing.T) {
	debianMachine(t, "forky")
	t.Setenv("CUDA_BACKEND", cudaLibrary(t, cudaCode{dotted{8, 6}, false}))
	s, log := openDebian(t.TempDir()), &bytes.Buffer{}
	s.log = slog.New(slog.NewTextHandler(log, nil))
	s.hardware = func(context.Context) hardware {
		return hardware{os: "linux", nvidia: &nvidia{dotted{11, 4}, dotted{9, 0}}}
	}
	for want, says := range map[string][]string{
		"cpu": nil, "blas": nil, "vulkan": {"it finds no GPU"}, "rocm": {"it finds no GPU"},
		"cuda": {"it finds no GPU", "no code for this GPU (compute capability 9.0), only for: 8.6"},
	} {
		for _, already := range []bool{false, true} {
			log.Reset()
			got, err := s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t), Variant: want})
			must(t, err)
			same(t, "variant", got.Variant, strings.Replace(want, "rocm", "hip", 1))
			same(t, want+" is there already", got.Already, already)
			if already {
				says = nil
			}
			same(t, "warnings about "+want, strings.Count(log.String(), "level=WARN"), len(says))
			for _, word := range says {
				if !strings.Contains(log.String(), word) {
					t.Errorf("%s: it says %q, want %q", want, log, word)
				}
			}
		}
	}
	must(t, os.RemoveAll(filepath.Join(s.dir, "llama.cpp-b11669-cuda")))
	t.Setenv("CUDA_BACKEND", filepath.Join(s.dir, "selected")) // no library
	got, err := s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t), Variant: "cuda"})
	must(t, err)
	same(t, "variant with unreadable code", got.Variant, "cuda")
	_, err = s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t), Variant: "sycl"})
	contains(t, err, `they have no variant "sycl", they have: blas, cpu, cuda, hip, vulkan`)
}

// The tree's libraries come first, and those of a driver are found wherever drivers are.
func TestDebianScript_FindsTheDriver(t *testing.T) {
	debianMachine(t, "forky")
	s := openDebian(t.TempDir())
	got, err := s.Get(t.Context(), GetOptions{Engine: LlamaCpp, Releases: unreachable(t), Variant: "vulkan"})
	must(t, err)
	lib := filepath.Join(s.dir, got.Name, "usr/lib/riscv64-linux-gnu")
	command := exec.Command(got.Path, "--model", "a b.gguf")
	command.Env = []string{"LD_LIBRARY_PATH=/opt/my driver/lib::relative:/usr/l*:/opt/second", "PATH=" + os.Getenv("PATH")}
	output, err := command.Output()
	must(t, err)
	arguments := strings.Split(strings.TrimSpace(string(output)), "\n")
	same(t, "the cache is used", arguments[0], "--library-path")
	folders := strings.Split(arguments[1], ":")
	same(t, "folders", folders[:5], []string{lib, lib + "/llama", "/opt/my driver/lib", "/usr/l*", "/opt/second"})
	for _, folder := range []string{"/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", "/run/opengl-driver/lib", "/usr/lib/riscv64-linux-gnu/nvidia/current", "/usr/lib/riscv64-linux-gnu"} {
		if !slices.Contains(folders, folder) {
			t.Errorf("%s isn't searched, only %v", folder, folders)
		}
	}
	same(t, "arguments", arguments[3:], []string{"--model", "a b.gguf"})
}

func TestMakeStartable_LinksWhatAVariantNeeds(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const lib = "usr/lib/x86_64-linux-gnu/"
	for _, file := range []string{"usr/bin/llama-server", lib + "ld-linux-x86-64.so.2", lib + "ggml/backends0/libggml-cpu-x64.so"} {
		must(t, os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, file), nil, 0o644))
	}
	_, err := makeStartable(root, variantBLAS)
	contains(t, err, "no BLAS backend")
	for _, file := range []string{lib + "ggml/backends0/libggml-blas.so", lib + "openblas-pthread/libblas.so.3"} {
		must(t, os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, file), nil, 0o644))
	}
	script, err := makeStartable(root, variantBLAS)
	must(t, err)
	for _, name := range []string{"libggml-cpu-x64.so", "libggml-blas.so", "libblas.so.3"} {
		if _, err := os.Stat(filepath.Join(root, lib, name)); err != nil {
			t.Errorf("it isn't beside the loader: %v", err)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, script))
	must(t, err)
	if strings.Contains(string(text), "LD_LIBRARY_PATH") || !strings.Contains(string(text), "--inhibit-cache") {
		t.Errorf("a runtime for the processor isn't isolated from the machine's libraries:\n%s", text)
	}
}
