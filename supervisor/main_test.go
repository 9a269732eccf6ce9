package supervisor

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/fakemlx"
)

func TestMain(m *testing.M) {
	fakeengine.MainIfChild()
	fakemlx.MainIfChild()
	serveIfTold()
	goleak.VerifyTestMain(m)
}
