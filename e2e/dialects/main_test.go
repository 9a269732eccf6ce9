package dialects

import (
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m)
}
