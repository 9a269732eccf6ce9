package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// In which smaller sizes a model may be loaded beside others: what the configuration gives stays, and the context always.
func TestSpec_SmallerSizes(t *testing.T) {
	t.Parallel()
	const key = "lmcaddy/tinychat"
	for name, c := range map[string]struct {
		settings Settings
		parallel int
		slots    []int // of the smaller sizes
		caches   int   // how many sizes there are of the prompt cache
	}{
		"what is chosen": {Settings{}, 3, []int{2, 1, 1, 1}, 3},
		"slots are given for the model": {
			Settings{Models: map[string]ModelSettings{key: {Parallel: 2}}}, 2, []int{2, 2}, 3,
		},
		"slots are given for the engine": {Settings{Engines: llamaServer(EngineSettings{Parallel: 1})}, 1, []int{1, 1}, 3},
		"the cache is given":             {Settings{Engines: llamaServer(EngineSettings{Args: []string{"--cache-ram", "10"}})}, 3, []int{2, 1}, 1},
		"all is given": {
			Settings{Engines: llamaServer(EngineSettings{Parallel: 2, Args: []string{"-cram", "0"}})}, 2, nil, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := open(t, withModel(t))
			c.settings.MemoryBudget.Bytes = 300 << 20
			push(t, n, 1, c.settings)
			testkit.Eventually(t, "the budget counts", func() bool { return n.Devices.budget.Load() == c.settings.MemoryBudget.Bytes })
			target, err := n.Names.Find(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			spec, err := n.Loads.spec(t.Context(), target.Model, LoadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if spec.Parallel != c.parallel {
				t.Errorf("%d slots, want %d", spec.Parallel, c.parallel)
			}
			var slots []int
			caches, last := map[int64]bool{spec.PromptCache: true}, spec.Memory
			for _, size := range spec.Smaller {
				slots = append(slots, size.Parallel)
				caches[size.PromptCache] = true
				if size.Memory >= last || size.Reserve != size.PromptCache {
					t.Errorf("after %d bytes, %+v", last, size)
				}
				last = size.Memory
			}
			if diff := cmp.Diff(c.slots, slots); diff != "" {
				t.Errorf("slots (-want +got):\n%s", diff)
			}
			if len(caches) != c.caches {
				t.Errorf("sizes of the prompt cache: %v, want %d", caches, c.caches)
			}
		})
	}
}
