package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// writer is an engine that writes beside its executable.
type writer struct {
	process.Program
	dir func() string
}

func (w writer) Command(l process.Launch, b process.Build) process.Cmd {
	cmd := w.Program.Command(l, b)
	cmd.Needs.Write = append(cmd.Needs.Write, w.dir())
	return cmd
}

// withGPU is an engine that lists a GPU.
type withGPU struct{ process.Program }

func (g withGPU) Probe(ctx context.Context) (process.Build, error) {
	build, err := g.Program.Probe(ctx)
	build.Devices = []process.Device{{Name: "CUDA0", Memory: 1 << 30}}
	return build, err
}

// An engine with a GPU is started as one without, though in two steps.
func TestConfined_AnEngineWithAGPU(t *testing.T) {
	t.Parallel()
	for name, level := range map[string]schedule.SandboxLevel{"narrow": schedule.SandboxNarrow, "wide": schedule.SandboxWide} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fake *fakeengine.Engine
			s, fake := startWith(t, nil, Options{}, func(p process.Program) process.Program {
				return atLevel{withGPU{writer{p, func() string { return fake.Dir }}}, level}
			})
			wanted := want("m", 1)
			wanted.Spec.Unconfined = false
			lease := acquire(t, s, wanted)
			if _, err := chat(t.Context(), lease); err != nil {
				t.Error(err)
			}
			proc := fmt.Sprintf("/proc/%d/", lease.Instance.PID)
			status, err := os.ReadFile(proc + "status")
			if err != nil || !strings.Contains(string(status), "NoNewPrivs:\t1") || !strings.Contains(string(status), "Seccomp:\t2") {
				t.Errorf("the engine isn't confined: %v\n%s", err, status)
			}
			began := fake.Wait(t, fakeengine.Is(fakeengine.Started))
			line, err := os.ReadFile(proc + "cmdline")
			if want := fake.Path + "\x00" + strings.Join(began.Argv, "\x00") + "\x00"; err != nil || string(line) != want || began.PID != lease.Instance.PID {
				t.Errorf("%q runs as %d, want %q as %d; %v", line, lease.Instance.PID, want, began.PID, err)
			}
			if env := strings.Join(began.EnvNames, " "); !strings.Contains(env, "TMPDIR") || !strings.Contains(env, "LMCADDY_ENGINE") || strings.Contains(env, "LMCADDY_ENTRY") {
				t.Errorf("environment %s", env)
			}
			if state := lease.Instance.Sandbox; strings.HasSuffix(state, ", wide") != (level == schedule.SandboxWide) {
				t.Errorf("its sandbox is %q", state)
			}
		})
	}
}

// atLevel is an engine with a sandbox of a level.
type atLevel struct {
	process.Program
	level schedule.SandboxLevel
}

func (a atLevel) Prepare(_ context.Context, l *process.Launch) error {
	own := *l.Spec
	own.Sandbox = a.level
	l.Spec = &own
	return nil
}

// A whole life in the sandbox: launch, chat, crash, replacement, unload.
func TestConfined_AnEngineWorks(t *testing.T) {
	t.Parallel()
	var fake *fakeengine.Engine
	s, fake := startWith(t, nil, Options{}, func(p process.Program) process.Program { return writer{p, func() string { return fake.Dir }} })
	wanted := want("m", 1)
	wanted.Spec.Unconfined = false
	for range 2 {
		lease := acquire(t, s, wanted)
		if _, err := chat(t.Context(), lease); err != nil {
			t.Error(err)
		}
		lease.Release()
		if got := s.Instances()[0].Sandbox; !strings.HasPrefix(got, "landlock, ABI ") {
			t.Errorf("its sandbox is %q", got)
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", lease.Instance.PID))
		if err != nil || !strings.Contains(string(status), "NoNewPrivs:\t1") || !strings.Contains(string(status), "Seccomp:\t2") {
			t.Errorf("the engine isn't confined: %v\n%s", err, status)
		}
		kill(t, lease.Instance.PID)
		testkit.Eventually(t, "the crash is known", func() bool { return len(s.Instances()) == 0 })
	}
	env := strings.Join(fake.Wait(t, fakeengine.Is(fakeengine.Started)).EnvNames, " ")
	if !strings.Contains(env, "TMPDIR") {
		t.Errorf("environment %s", env)
	}
}

// savingWriter is a writer that can save its slots.
type savingWriter struct {
	process.Program
	process.Saver
	writer writer
}

func (w savingWriter) Command(l process.Launch, b process.Build) process.Cmd {
	return w.writer.Command(l, b)
}

// An engine in the sandbox writes states into the folder of its launch, and reads those that are put there. Others it can't reach.
func TestConfined_StatesAreSavedAndRestored(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil, 1, later)
	h.close()
	h.wrap = func(p process.Program) process.Program {
		return savingWriter{p, p.(process.Saver), writer{p, func() string { return h.fake.Dir }}}
	}
	h.spec.Unconfined = false
	h.open()
	h.say("ann", "system", "one")
	h.unload()
	h.kept(1)
	if got := h.say("ann", "system", "one", "answer", "two"); got.cached == 0 {
		t.Errorf("%+v", got)
	}
	if got := h.Instances()[0].Sandbox; !strings.HasPrefix(got, "landlock, ABI ") {
		t.Errorf("its sandbox is %q", got)
	}
}

// A refusal by the sandbox is reported with a hint; other failures aren't.
func TestConfined_AFailureNamesTheSandbox(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say        string
		unconfined bool
		want       bool
	}{
		"something was refused":         {"libcuda: /etc/shadow: Permission denied", false, true},
		"no device was found":           {"ggml_cuda_init: failed to initialize CUDA", false, true},
		"another failure":               {"unknown model architecture: 'foobar'", false, false},
		"refused, but not by a sandbox": {"/etc/shadow: Permission denied", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fake *fakeengine.Engine
			script := &fakeengine.Script{Load: fakeengine.Load{Fail: &fakeengine.Death{Code: 1, Lines: []string{c.say}}}}
			s, fake := startWith(t, script, Options{}, func(p process.Program) process.Program { return writer{p, func() string { return fake.Dir }} })
			wanted := want("m", 1)
			wanted.Spec.Unconfined = c.unconfined
			_, err := s.Acquire(t.Context(), wanted, nil)
			var refused schedule.Error
			if !errors.As(err, &refused) || strings.Contains(refused.Message, "`sandbox off`") != c.want {
				t.Errorf("error %v; the sandbox is to be named: %t", err, c.want)
			}
		})
	}
}
