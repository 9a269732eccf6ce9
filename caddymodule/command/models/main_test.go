package models

import (
	"os"
	"testing"

	"github.com/mattn/go-runewidth"
)

func TestMain(m *testing.M) {
	runewidth.DefaultCondition.EastAsianWidth = false // whatever the language of the user who runs the tests
	os.Exit(m.Run())
}
