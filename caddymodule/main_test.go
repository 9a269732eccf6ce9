package caddymodule

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func TestMain(m *testing.M) {
	fakeengine.MainIfChild()
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
