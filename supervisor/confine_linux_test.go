package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/sandbox"
)

// writer is an engine that writes beside its executable.
type writer struct {
	Process
	dir func() string
}

func (w writer) Command(l Launch, b Build) Cmd {
	cmd := w.Process.Command(l, b)
	cmd.Needs.Write = append(cmd.Needs.Write, w.dir())
	return cmd
}

// confinedThreads counts the threads of this process that can't get new privileges, which all that were confined can't.
func confinedThreads(t *testing.T) int {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("threads %v, %v", tasks, err)
	}
	n := 0
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if err == nil && strings.Contains(string(status), "NoNewPrivs:\t1") {
			n++
		}
	}
	return n
}

// manyThreads blocks goroutines in system calls, so that Go needs as many threads.
func manyThreads(t *testing.T, n int) {
	t.Helper()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if _, err := os.ReadFile("/etc/passwd"); err != nil {
				t.Error(err)
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Error(err)
				return
			}
			defer listener.Close()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		})
	}
	all.Wait()
}

// Engines are confined; the server that starts them isn't, whatever threads it makes while it does. Not parallel: it looks at all
// threads of the process.
func TestConfined_TheServerIsNot(t *testing.T) {
	before := confinedThreads(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				box, err := sandbox.Prepare(sandbox.Rules{Execute: []string{"/usr", "/lib", "/lib64", "/bin"}, Devices: []string{"/dev/null"}})
				if err != nil {
					t.Error(err)
					return
				}
				cmd := exec.Command("/bin/sh", "-c", "read x < /etc/passwd")
				end, err := startOnThread(box, cmd)
				box.Close()
				if err != nil {
					t.Error(err)
				} else if cmd.Wait() == nil {
					t.Error("a confined process has read a file that it may not")
				}
				manyThreads(t, 4)
				end()
			}
		})
	}
	all.Wait()
	manyThreads(t, 64)
	for deadline := time.Now().Add(time.Minute); confinedThreads(t) > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d threads of ours are confined", confinedThreads(t)-before)
		}
	}
}

// A whole life in the sandbox: launch, chat, crash, replacement, unload.
func TestConfined_AnEngineWorks(t *testing.T) {
	t.Parallel()
	var fake *fakeengine.Engine
	s, fake := startWith(t, nil, Options{}, func(p Process) Process { return writer{p, func() string { return fake.Dir }} })
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
		eventually(t, "the crash is known", func() bool { return len(s.Instances()) == 0 })
	}
	env := strings.Join(fake.Wait(t, fakeengine.Is(fakeengine.Started)).EnvNames, " ")
	if !strings.Contains(env, "TMPDIR") {
		t.Errorf("environment %s", env)
	}
}

// savingWriter is a writer that can save its slots.
type savingWriter struct {
	Process
	Saver
	writer writer
}

func (w savingWriter) Command(l Launch, b Build) Cmd { return w.writer.Command(l, b) }

// An engine in the sandbox writes states into the folder of its launch, and reads those that are put there. Others it can't reach.
func TestConfined_StatesAreSavedAndRestored(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil, 1, later)
	h.close()
	h.wrap = func(p Process) Process {
		return savingWriter{p, p.(Saver), writer{p, func() string { return h.fake.Dir }}}
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
			s, fake := startWith(t, script, Options{}, func(p Process) Process { return writer{p, func() string { return fake.Dir }} })
			wanted := want("m", 1)
			wanted.Spec.Unconfined = c.unconfined
			_, err := s.Acquire(t.Context(), wanted)
			var refused Error
			if !errors.As(err, &refused) || strings.Contains(refused.Message, "`sandbox off`") != c.want {
				t.Errorf("error %v; the sandbox is to be named: %t", err, c.want)
			}
		})
	}
}

func TestWithShards(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "[a]*")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "m-00001-of-00003.gguf", "other-00002-of-00002.gguf"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := filepath.Join(dir, "m-00001-of-00002.gguf")
	got := withShards([]string{first, "/x.gguf"})
	if diff := cmp.Diff([]string{first, "/x.gguf", first, filepath.Join(dir, "m-00002-of-00002.gguf")}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
