package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// The keys of models with random weights, of half a gigabyte.
const (
	first  = "lmcaddy/first"
	second = "lmcaddy/second"
)

// large is their shape. Mesa has compiled for the shipped model what computes them.
var large = randommodel.Shape{
	Architecture: "llama", Layers: 10, Width: 1536, Heads: 24, KVHeads: 4, HeadSize: 64, FeedForward: 3 * 1536, Context: randommodel.LongContext,
	Type: randommodel.F16,
}

// startGPU starts a server whose site has metrics.
func startGPU(t *testing.T, h *harness.Home, c harness.Config) *harness.Server {
	t.Helper()
	c.Port, c.Engine = harness.FreePort(t), append([]string{"args --no-warmup"}, c.Engine...)
	return h.Launch(c.Port, "run", "--config", h.WriteFile("Caddyfile", withMetrics(c)))
}

// linked makes a home with some devices and with models that are links to one file.
func linked(t *testing.T, devices int, file string, keys ...string) *harness.Home {
	t.Helper()
	h := harness.NewVulkanHome(t, devices)
	for _, key := range keys {
		dir := filepath.Join(h.Dir, "models", filepath.FromSlash(key))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(file, filepath.Join(dir, filepath.Base(key)+"-f16.gguf")); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// load loads a model with a context of 2048 tokens, and returns the answer.
func load(s *harness.Server, model string) harness.Reply {
	s.T.Helper()
	return s.Post(harness.LoadPath, harness.Fields{"model": model, "context_length": 2048}).Want(s.T, http.StatusOK)
}

// seen is what ps says in all, and of an instance.
func seen(s *harness.Server, id string) (all, in gjson.Result) {
	s.T.Helper()
	r := s.Command("ps", "--json")
	if r.Status != 0 || !gjson.Valid(r.Output) {
		s.T.Fatalf("ps: status %d: %s", r.Status, r.Output)
	}
	all = gjson.Parse(r.Output)
	for _, in := range all.Get("instances").Array() {
		if in.Get("id").Str == id {
			return all, in
		}
	}
	return all, gjson.Result{}
}

// devicesOf returns the GPUs that an instance has memory of.
func devicesOf(in gjson.Result) (names []string) {
	for _, d := range in.Get("devices").Array() {
		if name := d.Get("name").Str; strings.HasPrefix(name, "Vulkan") && d.Get("memory_bytes").Int() > 1<<20 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// wantOn checks that an instance is wholly on devices; empty: on the processor, as it should be.
func wantOn(s *harness.Server, id, devices string) {
	s.T.Helper()
	_, in := seen(s, id)
	placement := devices
	if devices == "" {
		placement = "the processor"
	}
	if got := strings.Join(devicesOf(in), ", "); got != devices || in.Get("placement").Str != placement || in.Get("split").Bool() {
		s.T.Errorf("%s is on %q, where it should be on %q: %s", id, got, devices, in.Raw)
	}
}

// wantSplit checks that everybody is told that an instance isn't wholly on the GPU: placement is a part of what they are told.
func wantSplit(s *harness.Server, id string, loaded harness.Reply, end gjson.Result, placement string) {
	s.T.Helper()
	_, in := seen(s, id)
	is := in.Get("placement").Str
	if !strings.Contains(is, placement) || !in.Get("split").Bool() {
		s.T.Errorf("placement %q, want %q: %s", is, placement, in.Raw)
	}
	if got := loaded.Get("placement").Str; got != is {
		s.T.Errorf("the load's answer says %q, ps %q", got, is)
	}
	if got := end.Get("placement").Str; got != is {
		s.T.Errorf("the event says %q, ps %q", got, is)
	}
	if got := s.Command("ps").Output; !strings.Contains(got, id+" is not wholly on the GPU, which makes it many times slower: "+is) {
		s.T.Errorf("ps:\n%s", got)
	}
	if !logged(s, "not wholly on the GPU", id, is) {
		s.T.Errorf("no warning has %q", is)
	}
}

// logged reports whether a warning has some words.
func logged(s *harness.Server, words ...string) bool {
	for line := range strings.Lines(s.Log()) {
		if strings.Contains(line, `"level":"warn"`) && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			return true
		}
	}
	return false
}

// health returns the state and the reasons.
func health(s *harness.Server) string {
	s.T.Helper()
	r := s.Get("/api/v1/health")
	var codes []string
	for _, reason := range r.Get("reasons").Array() {
		codes = append(codes, reason.Str)
	}
	return strings.Join(append([]string{r.Get("status").Str}, codes...), " ")
}

// In the sandbox, as it is by default, a model is on the GPU.
func TestGPU_AModelIsOnIt(t *testing.T) {
	s := startGPU(t, harness.NewVulkanHome(t, 1), harness.Config{})
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("answer %q", a.Content)
	}
	wantOn(s, harness.Model, "Vulkan0")
	all, in := seen(s, harness.Model)
	if box := in.Get("sandbox").Str; !strings.HasPrefix(box, "landlock, ABI ") || strings.Contains(box, "wide") || all.Get("faults.#").Int() > 0 {
		t.Errorf("sandbox %q, faults %s", box, all.Get("faults").Raw)
	}
	if got := health(s); got != "ok" {
		t.Errorf("health %s", got)
	}
	if got := s.Command("doctor").Output; !strings.Contains(got, "The engine computes on Vulkan0 (2.1 GB).") {
		t.Errorf("doctor:\n%s", got)
	}
	const total = 2 << 30
	gpu := all.Get(`devices.#(name=="Vulkan0")`)
	if budget := gpu.Get("budget_bytes").Int(); gpu.Get("total_bytes").Int() != total || budget != total/100*95+total%100*95/100 {
		t.Errorf("the GPU: %s", gpu.Raw)
	}
	got := scrape(s)
	for name, want := range map[string]int64{
		`lm_gpu_claim_bytes{device="Vulkan0",model="` + harness.Model + `"}`: gpu.Get("claimed_bytes").Int(),
		`lm_gpu_budget_bytes{device="Vulkan0"}`:                              gpu.Get("budget_bytes").Int(),
		`lm_gpu_held_bytes{device="Vulkan0"}`:                                0,
	} {
		if value, ok := got[name]; !ok || int64(value) != want || strings.Contains(name, "claim") && want < 1<<20 {
			t.Errorf("%s %v, want %d", name, value, want)
		}
	}
}

// A small model is on one of two GPUs, the next on that with the most room.
func TestGPU_SmallModelsAreOnOneOfTwo(t *testing.T) {
	h := harness.NewVulkanHome(t, 2)
	h.AddModel(other, "tinydraft-f16.gguf", harness.ShippedModel(t))
	s := startGPU(t, h, harness.Config{})
	load(s, harness.Model)
	load(s, other)
	wantOn(s, harness.Model, "Vulkan0")
	wantOn(s, other, "Vulkan1")
}

// What the configuration says of a model's devices holds.
func TestGPU_TheConfigurationDecides(t *testing.T) {
	h := harness.NewVulkanHome(t, 2)
	var blocks []string
	for name, line := range map[string]string{"chosen": "devices Vulkan1", "none": "devices none", "layers": "gpu_layers 2", "missing": "devices CUDA7"} {
		h.AddModel("lmcaddy/"+name, name+"-f16.gguf", harness.ShippedModel(t))
		blocks = append(blocks, "model lmcaddy/"+name+" {", "\t"+line, "}")
	}
	s := startGPU(t, h, harness.Config{LM: blocks})
	for _, name := range []string{"chosen", "none", "layers"} {
		if answer := load(s, "lmcaddy/"+name); answer.Get("placement").Exists() {
			t.Errorf("the load of %s: %s", name, answer.Body)
		}
	}
	wantOn(s, "lmcaddy/chosen", "Vulkan1")
	wantOn(s, "lmcaddy/none", "")
	if _, in := seen(s, "lmcaddy/layers"); !strings.HasPrefix(in.Get("placement").Str, "2 of 5 layers on Vulkan0") || in.Get("split").Bool() {
		t.Errorf("%s", in.Raw)
	}
	r := s.Post(harness.LoadPath, harness.Fields{"model": "lmcaddy/missing"})
	if r.Status != http.StatusServiceUnavailable || !strings.Contains(r.Body, "the device CUDA7, which the engine llama_server doesn't find. It has: Vulkan0, Vulkan1.") {
		t.Errorf("status %d: %s", r.Status, r.Body)
	}
	if got := health(s); got != "ok" && got != "degraded model_failing" {
		t.Errorf("health %s", got)
	}
}
