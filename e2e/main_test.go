// Package e2e tests the built program with a real engine and the shipped model, from outside.
package e2e

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == engineName {
		if err := intrude(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	hearSignals()
	if err := harness.Setup(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cleanup, err := harness.SetupMLX()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("These tests run:", engineNames())
	status := m.Run()
	harness.CloseBrowser()
	cleanup()
	os.Exit(status)
}

// hearSignals lets the programs under test hear of signals, even if the tests were started by nohup or in the background of a script:
// programs inherit from these that they ignore some, unless the tests themselves handle them.
func hearSignals() {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}
