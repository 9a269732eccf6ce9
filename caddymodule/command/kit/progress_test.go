package kit

import (
	"bytes"
	"testing"

	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

func TestProgressLine_OfARuntime(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]runtimes.Progress{
		"fetching a.zip  1.0 MB of 20 MB, 5%\n": {Doing: "fetching a.zip", Done: 1e6, Total: 20e6, Percent: 5},
		"fetching b.zip  3.0 MB\n":              {Doing: "fetching b.zip", Done: 3e6},
		"reading lists  50%\n":                  {Doing: "reading lists", Percent: 50},
		"unpacking\n":                           {Doing: "unpacking"},
	} {
		var out bytes.Buffer
		line := NewProgressLine(&out)
		line.Show(p)
		line.End()
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
}
