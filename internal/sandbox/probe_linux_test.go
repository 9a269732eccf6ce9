package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

// probing is the first argument of this test's binary when it is the program in a box. The others are what it tries.
const probing = "probe"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == probing {
		tryAll(os.Args[2:])
		return
	}
	os.Exit(m.Run())
}

// tryAll prints how each attempt ended, as a JSON object.
func tryAll(attempts []string) {
	ends := map[string]string{}
	for _, attempt := range attempts {
		verb, object, _ := strings.Cut(attempt, " ")
		said, err := verbs[verb](object)
		if err != nil {
			said = err.Error()
			if errno, ok := errors.AsType[syscall.Errno](err); ok {
				said = unix.ErrnoName(errno)
			}
		}
		ends[attempt] = said
	}
	_ = json.NewEncoder(os.Stdout).Encode(ends)
}

const done = "done"

var verbs = map[string]func(object string) (string, error){
	"open": func(path string) (string, error) { // which is when Landlock decides
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return "", err
		}
		return done, f.Close()
	},
	"read": func(path string) (string, error) {
		_, err := os.ReadFile(path)
		return done, err
	},
	"name":    nameThread,
	"socket":  func(kind string) (string, error) { _, err := socket(kind); return done, err },
	"bind":    bindAbstract,
	"connect": connectAbstract,
	"death":   deathSignal,
}

// nameThread names another thread of the process, as glibc's pthread_setname_np does and so CUDA.
func nameThread(string) (string, error) {
	id, end := make(chan int), make(chan struct{})
	defer close(end)
	go func() {
		runtime.LockOSThread()
		id <- unix.Gettid()
		<-end
	}()
	path := fmt.Sprintf("/proc/self/task/%d/comm", <-id)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.WriteString("cuda-EvtHandlr"); err != nil {
		return "", err
	}
	name, err := os.ReadFile(path)
	return strings.TrimSpace(string(name)), err
}

func socket(kind string) (int, error) {
	family, number := unix.AF_UNIX, map[string]int{"stream": unix.SOCK_STREAM, "datagram": unix.SOCK_DGRAM, "seqpacket": unix.SOCK_SEQPACKET}[kind]
	if kind == "SCTP" {
		family, number = unix.AF_INET, unix.SOCK_SEQPACKET
	}
	return unix.Socket(family, number|unix.SOCK_CLOEXEC, 0)
}

// bindAbstract binds a socket to a name of the process alone, as CUDA does.
func bindAbstract(kind string) (string, error) {
	fd, err := socket(kind)
	if err != nil {
		return "", err
	}
	return done, unix.Bind(fd, abstract())
}

func connectAbstract(kind string) (string, error) {
	fd, err := socket(kind)
	if err != nil {
		return "", err
	}
	return done, unix.Connect(fd, abstract())
}

func abstract() *unix.SockaddrUnix {
	return &unix.SockaddrUnix{Name: "@cuda-uvmfd-" + strconv.Itoa(os.Getpid())}
}

func deathSignal(string) (string, error) {
	var sig int32
	err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&sig)), 0, 0, 0)
	return unix.SignalName(unix.Signal(sig)), err
}

// rulesOfProbe are what this test's binary needs.
func rulesOfProbe() Rules {
	return Rules{Execute: []string{os.Args[0], "/usr", "/lib", "/lib64"}, Read: []string{"/proc", "/sys"}, Devices: []string{"/dev/null"}}
}

// startIn starts a command in a box of its own.
func startIn(t *testing.T, rules Rules, cmd *exec.Cmd) error {
	t.Helper()
	box, err := Prepare(rules)
	if err != nil {
		t.Fatal(err)
	}
	return startInBox(t, box, cmd)
}

// startInBox starts a command in a box, and closes it.
func startInBox(t *testing.T, box *Box, cmd *exec.Cmd) error {
	t.Helper()
	defer box.Close()
	end, err := child.StartOnThread(func() error { return box.Start(cmd) })
	t.Cleanup(end)
	return err
}

// try returns how attempts end in a box.
func try(t *testing.T, rules Rules, attempts ...string) map[string]string {
	t.Helper()
	box, err := Prepare(rules)
	if err != nil {
		t.Fatal(err)
	}
	return tryIn(t, box, attempts...)
}

// tryIn returns how attempts end in a box, which it closes.
func tryIn(t *testing.T, box *Box, attempts ...string) map[string]string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{probing}, attempts...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = child.OwnGroup()
	if err := startInBox(t, box, cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	var ends map[string]string
	if err := json.Unmarshal(out.Bytes(), &ends); err != nil {
		t.Fatal(err, out.String(), said.String())
	}
	return ends
}
