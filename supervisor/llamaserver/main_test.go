package llamaserver

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func TestMain(m *testing.M) {
	fakeengine.MainIfChild()
	goleak.VerifyTestMain(m)
}
