package supervisor

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
)

func TestMain(m *testing.M) {
	fakeengine.MainIfChild()
	fakemlx.MainIfChild()
	serveIfTold()
	goleak.VerifyTestMain(m)
}
