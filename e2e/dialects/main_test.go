package dialects

import (
	"fmt"
	"os"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

func TestMain(m *testing.M) {
	err := os.Chdir("..") // the harness uses paths relative to the module's folder
	if err == nil {
		err = harness.Setup()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
