package supervisor

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
)

// LlamaServer makes the process of llama-server, whose executable locate finds. It is set by the package's external tests: the
// tests in here can't import what imports this package.
var LlamaServer func(locate func() (string, error)) Process

// MLXServer makes the process of mlx_lm.server, in the same way.
var MLXServer func(Setup) Process

// bare is a Process that is nothing else.
type bare struct{ Process }

// checked is one that can be asked whether it is ready.
type checked struct{ bare }

func (checked) Health() string { return "/health" }

// An engine that offers nothing but the Process is launched, answers, and is replaced after a crash.
func TestSupervisor_ABareEngine(t *testing.T) {
	t.Parallel()
	s, _ := startWith(t, nil, Options{}, func(p Process) Process { return bare{p} })
	first := works(t, s)
	if first.Instance.Batch != 0 {
		t.Errorf("its batch is %d, want none", first.Instance.Batch)
	}
	kill(t, first.Instance.PID)
	eventually(t, "the crash is known", func() bool { return len(s.Instances()) == 0 })
	works(t, s)
}

// An engine that says nothing is asked whether it is ready, if it can be.
func TestSupervisor_AnEngineThatIsAskedWhetherItIsReady(t *testing.T) {
	t.Parallel()
	script := &fakeengine.Script{NoChildProtocol: true, Silent: true, Stop: fakeengine.Stop{TermWorks: true}}
	s, _ := startWith(t, script, Options{}, func(p Process) Process { return checked{bare{p}} })
	works(t, s)
}

// Of an engine that can't be asked what it works on, only this is known: whether it refuses connections, and, if its health
// can be asked for, whether it answers at all.
func TestPulse_AnEngineThatTellsLess(t *testing.T) {
	t.Parallel()
	const stall = 5 * time.Minute
	for name, tt := range map[string]struct {
		engine Process
		health error
		after  time.Duration
		reason string
	}{
		"it answers":                         {bare{}, nil, stall, "made no progress for 5m0s"},
		"it answers nothing":                 {bare{}, context.DeadlineExceeded, stall, "made no progress for 5m0s"},
		"it refuses connections":             {bare{}, syscall.ECONNREFUSED, 0, reasonDeaf},
		"its health is fine":                 {checked{}, nil, stall, "made no progress for 5m0s"},
		"its health isn't told":              {checked{}, context.DeadlineExceeded, leastPatience, "made no progress for 30s"},
		"its health isn't told for a moment": {checked{}, syscall.EMFILE, stall, "made no progress for 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(p *patient) {
				p.engine, p.health = tt.engine, tt.health
				x := p.begin(p.t.Context(), &p.lease, 1<<10)
				x.got([]byte("data: {}"), nil)
				x.wait()
				p.silence(time.Hour)
				p.gaveUp(tt.after, tt.reason)
			})
		})
	}
}
