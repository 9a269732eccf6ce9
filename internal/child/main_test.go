package child

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	beParentIfTold()
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}
