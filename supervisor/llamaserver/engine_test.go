package llamaserver

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func TestEngine_Choices(t *testing.T) {
	t.Parallel()
	chat := process.Choices{ContextLength: true, Parallel: true, Devices: true, BatchSize: true, LeastBatch: 2, FlashAttention: true, OffloadKV: true, Draft: true, Adapters: true, PromptCache: true}
	mixed := chat
	mixed.Experts = true
	for name, tt := range map[string]struct {
		model catalog.Model
		want  process.Choices
	}{
		"chat":                 {catalog.Model{Type: catalog.TypeLLM}, chat},
		"a mixture of experts": {catalog.Model{Type: catalog.TypeLLM, Experts: 8}, mixed},
		"embeddings":           {catalog.Model{Type: catalog.TypeEmbedding, Experts: 8}, process.Choices{ContextLength: true, Parallel: true, Devices: true}},
	} {
		if diff := cmp.Diff(tt.want, Engine().Choices(&tt.model)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEngine_Fixed(t *testing.T) {
	t.Parallel()
	cache := func(mebibytes int64) process.Fixed { return process.Fixed{PromptCache: new(mebibytes << 20)} }
	for args, want := range map[string]process.Fixed{
		"":                              {},
		"--threads 1 --cachet 7":        {},
		"-c 4096":                       {Context: true},
		"--ctx-size=4096":               {Context: true},
		"--parallel 4":                  {Context: true, Slots: true},
		"-kvu":                          {Context: true, Slots: true},
		"--kv_unified":                  {Context: true, Slots: true},
		"-cram 10":                      cache(10),
		"--cache-ram 10 -cram 20":       cache(20),
		"--cache-ram 0":                 cache(0),
		"--cache-ram -1":                cache(0),
		"--cache-ram much":              cache(0),
		"--cache-ram 99999999999999999": cache(0),
		"--cache-ram":                   {},
	} {
		if diff := cmp.Diff(want, Engine().Fixed(strings.Fields(args))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

// What a load takes follows what is chosen of it.
func TestEngine_Estimate(t *testing.T) {
	t.Parallel()
	of := func(model, file string, change func(*schedule.Spec)) catalog.Memory {
		path := filepath.Join("..", "..", "testdata", "models", "lmcaddy", model, file)
		s := &schedule.Spec{Model: catalog.Model{Key: model, Path: path, Type: catalog.TypeLLM}, ContextLength: 1024, Parallel: 1}
		change(s)
		memory, err := Engine().Estimate(s)
		if err != nil {
			t.Fatal(err)
		}
		return memory
	}
	chat := func(change func(*schedule.Spec)) catalog.Memory { return of("tinychat", "tinychat-f16.gguf", change) }
	embedding := func(change func(*schedule.Spec)) catalog.Memory {
		return of("tinyembed", "tinyembed-f16.gguf", func(s *schedule.Spec) { s.Model.Type = catalog.TypeEmbedding; change(s) })
	}
	plain := chat(func(*schedule.Spec) {})
	if slots := chat(func(s *schedule.Spec) { s.Parallel = 2 }); slots.KVCache != 2*plain.KVCache {
		t.Errorf("two slots: a cache of %d, want twice %d", slots.KVCache, plain.KVCache)
	}
	if long := chat(func(s *schedule.Spec) { s.ContextLength = 2048 }); long.KVCache != 2*plain.KVCache {
		t.Errorf("twice the context: a cache of %d, want twice %d", long.KVCache, plain.KVCache)
	}
	if small := chat(func(s *schedule.Spec) { s.BatchSize = 64 }); small.Compute >= plain.Compute {
		t.Errorf("a small batch: %d for computing, want less than %d", small.Compute, plain.Compute)
	}
	if without := chat(func(s *schedule.Spec) { s.FlashAttention = schedule.Off }); without.Compute <= plain.Compute {
		t.Errorf("without flash attention: %d for computing, want more than %d", without.Compute, plain.Compute)
	}
	batch := embedding(func(s *schedule.Spec) { s.BatchSize = 1 })
	if diff := cmp.Diff(embedding(func(*schedule.Spec) {}), batch); diff != "" {
		t.Errorf("an embedding model has no batch to choose:\n%s", diff)
	}
}

// The executable is the configured one, as long as it is configured.
func TestEngine_Find(t *testing.T) {
	t.Parallel()
	fake := fakeengine.Install(t, nil)
	path := fake.Path
	setup := process.Setup{Path: func() string { return path }, Runtimes: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	process := Engine().New(setup)
	if build, err := process.Probe(t.Context()); err != nil || build.Path != fake.Path {
		t.Errorf("build %+v, error %v", build, err)
	}
	path = filepath.Join(fake.Dir, "nothing")
	if _, err := process.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "doesn't exist") {
		t.Errorf("error %v", err)
	}
	if _, err := Engine().Find(setup); err == nil || !strings.Contains(err.Error(), "doesn't exist") {
		t.Errorf("error %v", err)
	}
}
