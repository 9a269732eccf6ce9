package process

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

// LlamaServer makes the program of llama-server, whose executable locate finds. It is set by the package's external tests: the tests in here
// can't import what imports this package.
var LlamaServer func(locate func() (string, error)) Program

func TestMain(m *testing.M) {
	fakeengine.MainIfChild()
	goleak.VerifyTestMain(m)
}
