package command

import (
	"flag"
	"os"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"

	"github.com/lmcaddy/lmcaddy/internal/fakemcp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	fakemcp.MainIfChild()
	runewidth.DefaultCondition.EastAsianWidth = false // whatever the language of the user who runs the tests
	for _, c := range commands() {                    // as Prepare does
		caddycmd.RegisterCommand(c)
	}
	os.Exit(m.Run())
}

// wantGolden compares a text with a file of testdata.
func wantGolden(t *testing.T, name, got string) {
	t.Helper()
	golden := "testdata/" + name
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}
