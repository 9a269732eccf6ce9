package node

import (
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// TestPin_AmidNewSettings: what is pinned or unpinned while new settings are being applied stays so.
func TestPin_AmidNewSettings(t *testing.T) {
	t.Parallel()
	fake := fakeengine.Install(t, nil)
	n := open(t, withModel(t))
	settings := Settings{Engines: llamaServer(EngineSettings{Path: fake.Path, Sandbox: schedule.Off}), IdleTTL: time.Hour}
	push(t, n, 1, settings)
	in, _ := load(t, n, fake, LoadOptions{})
	pinned := false
	for gen := range uint64(20) {
		settings.IdleTTL += time.Minute
		push(t, n, gen+2, settings)
		latest := n.settings.Load()
		for applied := false; !applied; {
			pinned = !pinned
			if err := n.Loads.Pin(t.Context(), in, pinned); err != nil {
				t.Fatal(err)
			}
			got := n.Overview().Instances[0].Spec
			if got.Pinned != pinned {
				t.Fatalf("with settings %d: pinned is %v", gen, got.Pinned)
			}
			from, _ := got.Recipe.(recipe)
			applied = from.settings == latest
		}
	}
}
