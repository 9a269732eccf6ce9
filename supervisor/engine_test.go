package supervisor

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/llamaserver"
	"github.com/lmcaddy/lmcaddy/supervisor/mlxlm"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

// LlamaServer returns the program of llama-server, whose executable locate finds.
func LlamaServer(locate func() (string, error)) process.Program {
	return &llamaserver.Process{Locate: locate}
}

// MLXServer returns the program of mlx_lm.server.
func MLXServer(setup process.Setup) process.Program { return mlxlm.Engine().New(setup) }

// bare is a Program that is nothing else.
type bare struct{ process.Program }

// checked is one that can be asked whether it is ready.
type checked struct{ bare }

func (checked) Health() string { return "/health" }

// An engine that offers nothing but the Program is launched, answers, and is replaced after a crash.
func TestSupervisor_ABareEngine(t *testing.T) {
	t.Parallel()
	s, _ := startWith(t, nil, Options{}, func(p process.Program) process.Program { return bare{p} })
	first := works(t, s)
	if first.Instance.Batch != 0 {
		t.Errorf("its batch is %d, want none", first.Instance.Batch)
	}
	kill(t, first.Instance.PID)
	testkit.Eventually(t, "the crash is known", func() bool { return len(s.Instances()) == 0 })
	works(t, s)
}

// An engine that says nothing is asked whether it is ready, if it can be.
func TestSupervisor_AnEngineThatIsAskedWhetherItIsReady(t *testing.T) {
	t.Parallel()
	script := &fakeengine.Script{NoChildProtocol: true, Silent: true, Stop: fakeengine.Stop{TermWorks: true}}
	s, _ := startWith(t, script, Options{}, func(p process.Program) process.Program { return checked{bare{p}} })
	works(t, s)
}
