//go:build unix

package supervisor

import (
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

func TestLoss_AnEngineWithoutItsListenerIsReplaced(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]*fakeengine.Script{
		"idle": nil,
		"busy": {Cases: []fakeengine.Case{{Start: 1, Script: fakeengine.Script{
			Rules: []fakeengine.Rule{{Cues: []fakeengine.Cue{{After: 1, Gate: "never"}}}},
		}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, fake := startWith(t, script, Options{Options: process.Options{Stall: func() time.Duration { return 12 * time.Second }}}, nil)
			lease := acquire(t, s, want("m", 2))
			var busy <-chan error
			if script != nil {
				busy = sent(t.Context(), lease)
				fake.Wait(t, fakeengine.At("never"))
			}
			if err := syscall.Kill(lease.Instance.PID, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			fake.Wait(t, fakeengine.Is(fakeengine.Asked))
			var err error
			if busy == nil {
				_, err = chat(t.Context(), lease)
			} else {
				err = <-busy // the engine is asked what it is at
			}
			if err == nil {
				t.Fatal("a request to an engine without a listener ended well")
			}
			if got := lease.Lost(t.Context(), err); got.Kind != process.Deaf {
				t.Errorf("the loss is %+v, want Deaf", got)
			}
			lease.Release()
			if next := works(t, s); next.Instance.PID == lease.Instance.PID {
				t.Error("the same process was lent again")
			}
		})
	}
}
