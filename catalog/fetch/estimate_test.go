package fetch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

// left returns how long a download is estimated to take from now on.
func left(t *testing.T, j Job) time.Duration {
	t.Helper()
	if j.State != Downloading || j.DownloadedBytes > 0 || j.EstimatedCompletion.IsZero() {
		t.Fatalf("%+v", j)
	}
	return time.Until(j.EstimatedCompletion)
}

// TestEstimate_BeforeTheFirstByte: it is there from the beginning, for the first download and for the next ones.
func TestEstimate_BeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", StallAtOnce: true, Times: 1})
	job := w.start(tiny)
	if d := left(t, job); d > time.Second {
		t.Errorf("the first of %d bytes takes %v", tinySize, d)
	}
	w.hub.Mend()
	w.completes(job)
	w.close()
	w.took(job, 1000*time.Second)
	w.hub.Add("acme/next", fakehub.Files{"next-Q4_K_M.gguf": fakehub.Random(2, 2*tinySize)})
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", StallAtOnce: true, Times: 1})
	next := w.start("acme/next")
	if d := left(t, next); d < 1990*time.Second || d > 2010*time.Second {
		t.Errorf("the next of twice the size takes %v", d)
	}
	w.hub.Mend()
}

// took changes how long a completed download has taken.
func (w *world) took(j Job, d time.Duration) {
	w.Helper()
	name := filepath.Join(w.opts.State, j.ID+recordSuffix)
	text, err := os.ReadFile(name)
	saved := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &saved)
	}
	saved["completed_at"] = j.StartedAt.Add(d)
	if err == nil {
		text, err = json.Marshal(saved)
	}
	if err == nil {
		err = os.WriteFile(name, text, 0o600)
	}
	if err != nil {
		w.Fatal(err)
	}
}
