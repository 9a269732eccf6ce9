package chat

import (
	"os"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakemcp"
)

func TestMain(m *testing.M) {
	fakemcp.MainIfChild()
	runewidth.DefaultCondition.EastAsianWidth = false // whatever the language of the user who runs the tests
	os.Exit(m.Run())
}
