package command

import (
	"os"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/mattn/go-runewidth"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakemcp"
)

func TestMain(m *testing.M) {
	fakemcp.MainIfChild()
	runewidth.DefaultCondition.EastAsianWidth = false // whatever the language of the user who runs the tests
	for _, c := range commands() {                    // as Prepare does
		caddycmd.RegisterCommand(c)
	}
	os.Exit(m.Run())
}
