package node

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// TestLoad_NoMoreSlotsThanABatchHasTokens: llama-server aborts where a batch hasn't a token for each slot.
func TestLoad_NoMoreSlotsThanABatchHasTokens(t *testing.T) {
	t.Parallel()
	fake := fakeengine.Install(t, nil)
	for name, tt := range map[string]struct{ batch, parallel, want int }{
		"a batch of one":       {1, 0, 2},
		"of fewer than slots":  {3, 6, 3},
		"of more":              {64, 6, 6},
		"of the engine's size": {0, 6, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := open(t, withModel(t))
			push(t, n, 1, Settings{
				JIT: true, Engines: llamaServer(EngineSettings{Path: fake.Path, Sandbox: schedule.Off}),
				Models: map[string]ModelSettings{"lmcaddy/tinychat": {Parallel: tt.parallel}},
			})
			target, err := n.Names.Find(t.Context(), "tinychat")
			if err != nil {
				t.Fatal(err)
			}
			loaded, err := n.Loads.Load(t.Context(), target.Model, LoadOptions{BatchSize: tt.batch}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if loaded.Spec.Parallel != tt.want {
				t.Errorf("%d slots, want %d", loaded.Spec.Parallel, tt.want)
			}
		})
	}
}
