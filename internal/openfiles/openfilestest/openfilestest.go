//go:build unix

// Package openfilestest helps to test what happens if no file descriptor is left.
package openfilestest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// variable holds the name of the test to run, in the process that Run starts.
const variable = "LMCADDY_TEST_WITHOUT_FILES"

// Run runs a test in a process of its own, since the limit applies to a process. A function passed to without finds no file
// descriptor left. A test must call Run first; a subtest must not call it.
func Run(t *testing.T, test func(t *testing.T, without func(do func()))) {
	t.Helper()
	if os.Getenv(variable) == t.Name() {
		test(t, without)
		return
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, output)
	}
}

func without(do func()) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		panic(err)
	}
	none := before
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		panic(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			panic(err)
		}
	}()
	do()
}
