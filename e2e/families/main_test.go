package families

import (
	"flag"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var (
	folder = flag.String("models", "", "a `folder` with models, publisher/repository/file.gguf, which are checked in the place of the tests' own")
	table  = flag.String("table", "", "the `document` into whose section for it the table is written")
)

func TestMain(m *testing.M) {
	flag.Parse()
	harness.Main(m)
}
