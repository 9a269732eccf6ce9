package caddymodule

import (
	"os"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func TestMain(m *testing.M) {
	fakeengine.MainIfChild()
	os.Exit(m.Run())
}
