package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLlamaVersion(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"version: 0.7.0 (build 11669, commit Debian)\nbuilt with GNU 16.2.0 for Linux x86_64\n":           "b11669",
		"ggml_vulkan: 0 = Some GPU\nversion: 0.2.0-dev (build 10709, commit 9a9394a89)\nbuilt with Clang": "b10709",
		"version: 6123 (abcdef12)\nbuilt with cc\n":                                                       "b6123",
		"version: unknown\n": "",
		"":                   "",
	} {
		if got := LlamaVersion(output); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

func TestEnvironment_HasNoOptionsAndNoSecrets(t *testing.T) {
	t.Parallel()
	const order = "CUDA_DEVICE_ORDER=PCI_BUS_ID"
	ours := []string{"Path=C:\\bin", "LLAMA_ARG_DRAFT_MAX=1", "AIP_MODE=PREDICTION", "HF_TOKEN=secret", "LD_LIBRARY_PATH=/opt/cuda", "CUDA_VISIBLE_DEVICES=1"}
	for name, c := range map[string]struct {
		system   string
		isScript bool
		want     []string
	}{
		"a program":                   {"linux", false, []string{"LD_LIBRARY_PATH=/opt/cuda", "CUDA_VISIBLE_DEVICES=1", order, spins, noPath}},
		"a script":                    {"linux", true, []string{"LD_LIBRARY_PATH=/opt/cuda", "CUDA_VISIBLE_DEVICES=1", order, spins}},
		"where libraries are on PATH": {"windows", false, []string{"Path=C:\\bin", "LD_LIBRARY_PATH=/opt/cuda", "CUDA_VISIBLE_DEVICES=1", order, spins}},
	} {
		if diff := cmp.Diff(c.want, passed(ours, c.system, c.isScript)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Without these, an engine computes on another device than the one that its user has chosen, or doesn't find it.
func TestEnvironment_HasWhatChoosesDevicesAndThreads(t *testing.T) {
	t.Parallel()
	var ours []string
	for _, name := range []string{
		"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_CACHE_PATH", "NVIDIA_VISIBLE_DEVICES", "GGML_CUDA_ENABLE_UNIFIED_MEMORY",
		"GGML_VK_VISIBLE_DEVICES", "VK_DRIVER_FILES", "VK_ADD_DRIVER_FILES", "VK_ICD_FILENAMES", "MESA_SHADER_CACHE_DIR", "MESA_VK_DEVICE_SELECT", "DRI_PRIME",
		"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HSA_OVERRIDE_GFX_VERSION", "ROCBLAS_TENSILE_LIBPATH",
		"ONEAPI_DEVICE_SELECTOR", "ZE_AFFINITY_MASK", "ZES_ENABLE_SYSMAN", "SYCL_CACHE_PERSISTENT", "OCL_ICD_VENDORS",
		"OMP_NUM_THREADS", "OMP_WAIT_POLICY",
	} {
		ours = append(ours, name+"=x")
	}
	if diff := cmp.Diff(ours, passed(ours, "linux", true)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
