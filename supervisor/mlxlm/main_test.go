package mlxlm

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
)

func TestMain(m *testing.M) {
	fakemlx.MainIfChild()
	serveIfTold()
	beForeignIfTold()
	goleak.VerifyTestMain(m)
}

// beForeignIfTold makes the test binary a program that isn't an mlx_lm.server: it ignores its arguments and never ends.
func beForeignIfTold() {
	if os.Getenv("LMCADDY_TEST_FOREIGN") != "" {
		select {}
	}
}
