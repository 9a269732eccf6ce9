package process

import (
	"context"
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
	"golang.org/x/sys/unix"

	"github.com/lmcaddy/lmcaddy/internal/sandbox"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

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
	testkit.Eventually(t, "no more threads of ours are confined", func() bool { return confinedThreads(t) <= before })
}

// likeCUDA is the argument with which this test's binary does what CUDA does when it is initialized.
const likeCUDA = "like-cuda"

func init() {
	if len(os.Args) != 2 || os.Args[1] != likeCUDA {
		return
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprint("@cuda-uvmfd-", os.Getpid())})
	}
	fmt.Println("socket:", err)
	fmt.Println("name:", os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", unix.Gettid()), []byte("cuda"), 0))
	os.Exit(0)
}

// A query is confined as a launch is.
func TestQueryConfined(t *testing.T) {
	t.Parallel()
	gpu, cpu := Build{Devices: []Device{{Name: "CUDA0"}}}, Build{Devices: []Device{}}
	for name, c := range map[string]struct {
		launch   Launch
		build    Build
		command  []string
		has, not string
		fails    bool
	}{
		"confined":     {Launch{}, gpu, []string{"/bin/cat", "/proc/self/status"}, "NoNewPrivs:\t1", "", false},
		"unconfined":   {Launch{Spec: &schedule.Spec{Unconfined: true}}, gpu, []string{"/bin/cat", "/proc/self/status"}, "NoNewPrivs:\t0", "", false},
		"refused":      {Launch{}, gpu, []string{"/bin/cat", "/etc/passwd"}, "Permission denied", "root:", true},
		"wide":         {Launch{Spec: &schedule.Spec{Sandbox: schedule.SandboxWide}}, gpu, []string{"/bin/cat", "/etc/passwd"}, "root:", "", false},
		"no GPU":       {Launch{Spec: &schedule.Spec{Sandbox: schedule.SandboxWide}}, cpu, []string{"/bin/cat", "/etc/passwd"}, "Permission denied", "root:", true},
		"sandbox_read": {Launch{Spec: &schedule.Spec{Readable: []string{"/etc/passwd"}}}, gpu, []string{"/bin/cat", "/etc/passwd"}, "root:", "", false},
		"a name":       {Launch{}, gpu, []string{"/usr/bin/tee", "/proc/self/comm"}, "Permission denied", "", true},
		"CUDA":         {Launch{}, gpu, []string{os.Args[0], likeCUDA}, "socket: <nil>\nname: <nil>\n", "", false},
		"CUDA, wide":   {Launch{Spec: &schedule.Spec{Sandbox: schedule.SandboxWide}}, gpu, []string{os.Args[0], likeCUDA}, "socket: <nil>\nname: <nil>\n", "", false},
		"CUDA, no GPU": {Launch{}, cpu, []string{os.Args[0], likeCUDA}, "", "<nil>", false},
		"places":       {Launch{Cache: "/cache"}, gpu, []string{"/usr/bin/env"}, "XDG_CACHE_HOME=/cache\n", "LMCADDY_ENTRY", false},
		"missing":      {Launch{}, gpu, []string{"/bin/none"}, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.launch.Spec == nil {
				c.launch.Spec = &schedule.Spec{}
			}
			said, err := queryConfined(t.Context(), c.launch, Cmd{Path: c.command[0], Args: c.command[1:]}, c.build)
			if !strings.Contains(said, c.has) || (c.not != "" && strings.Contains(said, c.not)) || (err != nil) != c.fails {
				t.Errorf("%v, output:\n%s", err, said)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := queryConfined(ctx, Launch{Spec: &schedule.Spec{}}, Cmd{Path: "/bin/sleep", Args: []string{"600"}}, gpu); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v of a query that isn't waited for", err)
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
