package families

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var (
	folder = flag.String("models", "", "a `folder` with models, publisher/repository/file.gguf, which are checked in the place of the tests' own")
	table  = flag.String("table", "", "the `document` into whose section for it the table is written")
)

func TestMain(m *testing.M) {
	flag.Parse()
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
