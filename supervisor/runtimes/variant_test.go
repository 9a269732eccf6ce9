package runtimes

import "testing"

// published are names of assets in a release of the project (b11433, shortened).
var published = []string{
	"cudart-llama-b11433-bin-ubuntu-cuda-12.8-x64.tar.gz",
	"cudart-llama-b11433-bin-ubuntu-cuda-13.4-x64.tar.gz",
	"cudart-llama-bin-win-cuda-12.4-x64.zip",
	"cudart-llama-bin-win-cuda-13.4-arm64.zip",
	"cudart-llama-bin-win-cuda-13.4-x64.zip",
	"llama-b11433-bin-android-arm64.tar.gz",
	"llama-b11433-bin-macos-arm64.tar.gz",
	"llama-b11433-bin-macos-arm64-kleidiai.tar.gz",
	"llama-b11433-bin-macos-x64.tar.gz",
	"llama-b11433-bin-ubuntu-arm64.tar.gz",
	"llama-b11433-bin-ubuntu-cuda-12.8-x64.tar.gz",
	"llama-b11433-bin-ubuntu-cuda-13.4-x64.tar.gz",
	"llama-b11433-bin-ubuntu-openvino-2026.4.1-x64.tar.gz",
	"llama-b11433-bin-ubuntu-rocm-10.0-x64.tar.gz",
	"llama-b11433-bin-ubuntu-s390x.tar.gz",
	"llama-b11433-bin-ubuntu-vulkan-arm64.tar.gz",
	"llama-b11433-bin-ubuntu-vulkan-x64.tar.gz",
	"llama-b11433-bin-ubuntu-x64.tar.gz",
	"llama-b11433-bin-win-cpu-arm64.zip",
	"llama-b11433-bin-win-cpu-x64.zip",
	"llama-b11433-bin-win-cuda-12.4-x64.zip",
	"llama-b11433-bin-win-cuda-13.4-arm64.zip",
	"llama-b11433-bin-win-cuda-13.4-x64.zip",
	"llama-b11433-bin-win-opencl-adreno-arm64.zip",
	"llama-b11433-bin-win-sycl-x64.zip",
	"llama-b11433-bin-win-vulkan-x64.zip",
	"llama-b11433-ui.tar.gz",
	"llama-b11433-xcframework.zip",
}

func publishedRelease(names ...string) release {
	r := release{tag: "b11433"}
	for _, name := range names {
		r.assets = append(r.assets, asset{name: name})
	}
	return r
}

func TestChoose(t *testing.T) {
	t.Parallel()
	linux := func(gpu *nvidia, vulkan bool) hardware {
		return hardware{os: "linux", arch: "amd64", nvidia: gpu, vulkan: vulkan}
	}
	const prefix = "llama-b11433-bin-"
	for _, test := range []struct {
		name     string
		hardware hardware
		want     string
		archives []string
	}{
		{"nothing", linux(nil, false), "", []string{"ubuntu-x64.tar.gz"}},
		{"vulkan", linux(nil, true), "", []string{"ubuntu-vulkan-x64.tar.gz", "ubuntu-x64.tar.gz"}},
		{"arm with vulkan", hardware{os: "linux", arch: "arm64", vulkan: true}, "", []string{"ubuntu-vulkan-arm64.tar.gz", "ubuntu-arm64.tar.gz"}},
		{
			"new driver", linux(&nvidia{cuda: dotted{13, 6}, capability: dotted{12, 0}}, true), "",
			[]string{"ubuntu-cuda-13.4-x64.tar.gz", "ubuntu-vulkan-x64.tar.gz", "ubuntu-x64.tar.gz"},
		},
		{
			"driver between", linux(&nvidia{cuda: dotted{13, 0}, capability: dotted{8, 6}}, false), "",
			[]string{"ubuntu-cuda-12.8-x64.tar.gz", "ubuntu-x64.tar.gz"},
		},
		{"older minor of the same major", linux(&nvidia{cuda: dotted{12, 2}}, false), "", []string{"ubuntu-cuda-12.8-x64.tar.gz", "ubuntu-x64.tar.gz"}},
		{
			"old GPU with a new driver", linux(&nvidia{cuda: dotted{13, 6}, capability: dotted{6, 1}}, false), "",
			[]string{"ubuntu-cuda-12.8-x64.tar.gz", "ubuntu-x64.tar.gz"},
		},
		{"driver too old", linux(&nvidia{cuda: dotted{11, 4}}, true), "", []string{"ubuntu-vulkan-x64.tar.gz", "ubuntu-x64.tar.gz"}},
		{"unknown driver", linux(&nvidia{}, false), "", []string{"ubuntu-cuda-12.8-x64.tar.gz", "ubuntu-x64.tar.gz"}},
		{"NVIDIA without a build", hardware{os: "linux", arch: "arm64", nvidia: &nvidia{cuda: dotted{13, 4}}}, "", []string{"ubuntu-arm64.tar.gz"}},
		{"Apple silicon", hardware{os: "darwin", arch: "arm64"}, "", []string{"macos-arm64.tar.gz"}},
		{"Intel Mac", hardware{os: "darwin", arch: "amd64"}, "", []string{"macos-x64.tar.gz"}},
		{
			"Windows",
			hardware{os: "windows", arch: "amd64", nvidia: &nvidia{cuda: dotted{12, 9}}, vulkan: true},
			"",
			[]string{"win-cuda-12.4-x64.zip", "win-vulkan-x64.zip", "win-cpu-x64.zip"},
		},
		{"Windows on arm", hardware{os: "windows", arch: "arm64"}, "", []string{"win-cpu-arm64.zip"}},
		{"asked for cpu", linux(&nvidia{cuda: dotted{13, 6}}, true), "cpu", []string{"ubuntu-x64.tar.gz"}},
		{"asked for cuda without a GPU", linux(nil, false), "cuda", []string{"ubuntu-cuda-12.8-x64.tar.gz"}},
		{"asked for metal", hardware{os: "darwin", arch: "arm64"}, "metal", []string{"macos-arm64.tar.gz"}},
		{"asked for another that there is", linux(nil, false), "rocm", []string{"ubuntu-rocm-10.0-x64.tar.gz"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			builds, err := test.hardware.choose(publishedRelease(published...), test.want)
			must(t, err)
			var archives []string
			for _, b := range builds {
				archives = append(archives, b.archive.name[len(prefix):])
			}
			same(t, "builds", archives, test.archives)
		})
	}
}

func TestChoose_CUDAComesWithItsOwnLibraries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ os, libraries string }{
		{"linux", "cudart-llama-b11433-bin-ubuntu-cuda-13.4-x64.tar.gz"},
		{"windows", "cudart-llama-bin-win-cuda-13.4-x64.zip"},
	} {
		h := hardware{os: test.os, arch: "amd64", nvidia: &nvidia{cuda: dotted{13, 4}}}
		builds, err := h.choose(publishedRelease(published...), "")
		must(t, err)
		if builds[0].libraries == nil || builds[0].libraries.name != test.libraries {
			t.Errorf("%s: with %+v", test.os, builds[0].libraries)
		}
	}
	alone := publishedRelease("llama-b11433-bin-ubuntu-cuda-13.4-x64.tar.gz", "llama-b11433-bin-ubuntu-x64.tar.gz")
	h := hardware{os: "linux", arch: "amd64", nvidia: &nvidia{cuda: dotted{13, 4}}}
	builds, err := h.choose(alone, "")
	must(t, err)
	same(t, "without its libraries", builds[0].variant, "cpu")
	builds, err = h.choose(alone, "cuda")
	must(t, err)
	same(t, "without its libraries, asked for", builds[0].variant, "cuda")
}

func TestChoose_SaysWhatIsOffered(t *testing.T) {
	t.Parallel()
	h := hardware{os: "windows", arch: "arm64"}
	_, err := h.choose(publishedRelease(published...), "metal")
	contains(t, err, `no variant "metal" for windows/arm64; it has: cpu, cuda, opencl`)
	_, err = hardware{os: "linux", arch: "riscv64"}.choose(publishedRelease(published...), "")
	contains(t, err, "no build for linux/riscv64")
	if !fallsBack(err) {
		t.Error("another source isn't tried")
	}
}

func TestParseSMI(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, banner, capabilities string
		want                       nvidia
	}{
		{"two GPUs", "| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |", "8.6\n6.1\n", nvidia{dotted{12, 4}, dotted{6, 1}}},
		{"newer words", "| NVIDIA-SMI 610.12   KMD Version: 610.12   CUDA UMD Version: 13.4 |", "12.0\n", nvidia{dotted{13, 4}, dotted{12, 0}}},
		{"old tool", "| NVIDIA-SMI 390.48 Driver Version: 390.48 |", "Field \"compute_cap\" is not a valid field to query.\n", nvidia{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := parseSMI(test.banner, test.capabilities); *got != test.want {
				t.Errorf("got %+v, want %+v", *got, test.want)
			}
		})
	}
	for driver, want := range map[int]dotted{610: {13, 0}, 580: {13, 0}, 579: {12, 0}, 470: {11, 0}, 0: {}} {
		if got := driverCUDA(driver); got != want {
			t.Errorf("driver %d: %v", driver, got)
		}
	}
}
