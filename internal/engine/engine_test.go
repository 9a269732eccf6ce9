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
		"a program":                   {"linux", false, []string{"LD_LIBRARY_PATH=/opt/cuda", "CUDA_VISIBLE_DEVICES=1", order, noPath}},
		"a script":                    {"linux", true, []string{"LD_LIBRARY_PATH=/opt/cuda", "CUDA_VISIBLE_DEVICES=1", order}},
		"where libraries are on PATH": {"windows", false, []string{"Path=C:\\bin", "LD_LIBRARY_PATH=/opt/cuda", "CUDA_VISIBLE_DEVICES=1", order}},
	} {
		if diff := cmp.Diff(c.want, passed(ours, c.system, c.isScript)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
