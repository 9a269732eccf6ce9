// Package e2e tests the built program with a real engine and the shipped model, from outside.
package e2e

import (
	"fmt"
	"os"
	"path/filepath"
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
