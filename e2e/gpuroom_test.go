package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

func TestGPU_Room(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large-f16.gguf")
	if err := randommodel.Write(file, large, 1, harness.ShippedModel(t)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*testing.T, string){
		"an idle model goes": idleModelGoes, "a pinned one stays": pinnedModelStays, "a model is too large": tooLarge, "two GPUs are enough": spread,
	} {
		t.Run(name, func(t *testing.T) { test(t, file) })
	}
}

func idleModelGoes(t *testing.T, file string) {
	s := startGPU(t, linked(t, 1, file, first, second), harness.Config{LM: []string{"gpu_memory 1GiB"}})
	load(s, first)
	wantOn(s, first, "Vulkan0")
	stream := events(s, "", "", "", "")
	stream.until("events.start")
	load(s, second)
	if _, gone := stream.until("model_unload.start"); gone.Get("instance_id").Str != first || gone.Get("reason").Str != "room" {
		t.Errorf("%s", gone.Raw)
	}
	if _, end := stream.until("model_load.end"); end.Get("instance_id").Str != second || end.Get("placement").Str != "Vulkan0" {
		t.Errorf("%s", end.Raw)
	}
	if _, in := seen(s, first); in.Exists() {
		t.Errorf("the idle model is still there: %s", in.Raw)
	}
	wantOn(s, second, "Vulkan0")
	wantSamples(s, "after an eviction", map[string]float64{because("lm_evictions_total", first, "room"): 1, of("lm_loaded", first): 0})
}

func pinnedModelStays(t *testing.T, file string) {
	s := startGPU(t, linked(t, 1, file, first, second), harness.Config{LM: []string{"gpu_memory 1GiB", "model " + first + " {", "\tpin", "}"}})
	load(s, first)
	stream := events(s, "", "", "", "")
	stream.until("events.start")
	loaded := load(s, second)
	_, end := stream.until("model_load.end")
	wantOn(s, first, "Vulkan0")
	wantSplit(s, second, loaded, end, " of 11 layers on Vulkan0 (")
}

func tooLarge(t *testing.T, file string) {
	s := startGPU(t, linked(t, 1, file, first), harness.Config{LM: []string{"gpu_memory 350MiB"}})
	said := s.Post(harness.LoadPath, harness.Fields{"model": first, "context_length": 2048, "estimate_only": true})
	if got := said.Get("placement").Str; !strings.HasSuffix(got, " % on Vulkan0, the rest on the processor") {
		t.Errorf("estimate: %s", said.Body)
	}
	if gpu := said.Get(`devices.#(name=="Vulkan0")`); gpu.Get("budget_bytes").Int() != 350<<20 || gpu.Get("needed_bytes").Int() == 0 || gpu.Get("needed_bytes").Int() > 350<<20 {
		t.Errorf("estimate: %s", said.Body)
	}
	stream := events(s, "", "", "", "")
	stream.until("events.start")
	loaded := load(s, first)
	_, end := stream.until("model_load.end")
	wantSplit(s, first, loaded, end, " of 11 layers on Vulkan0 (")
	if all, _ := seen(s, first); all.Get(`devices.#(name=="Vulkan0").claimed_bytes`).Int() > 350<<20 {
		t.Errorf("more is taken than there may be: %s", all.Raw)
	}
}

func spread(t *testing.T, file string) {
	s := startGPU(t, linked(t, 2, file, first), harness.Config{LM: []string{"gpu_memory 450MiB"}})
	load(s, first)
	wantOn(s, first, "Vulkan0, Vulkan1")
}
