package models

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// Of a model on a remote that tells its name only, nothing is shown that isn't known.
func TestRemoteModel_IsShownWithWhatIsKnown(t *testing.T) {
	t.Parallel()
	var m resource.ModelDetails
	m.Key, m.Type = "org/far", "llm"
	m.Places = []resource.Place{{Remote: "a", Instance: "a/org/far", Loaded: true, Reachable: true}}
	if diff := cmp.Diff([]string{"org/far", "llm", "-", "-", "-", "-", "on a"}, modelRow(&m.Model)); diff != "" {
		t.Errorf("ls (-want +got):\n%s", diff)
	}
	var shown bytes.Buffer
	if err := writeDetails(&shown, &m); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"Size", "Context", "Settings", "as memory allows"} {
		if strings.Contains(shown.String(), word) {
			t.Errorf("show tells the %s:\n%s", word, &shown)
		}
	}
}
