package fetch

import (
	"fmt"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

// TestQueue_AFewAreDownloadedAtOnce: the others wait for their turn, as downloading, and can be paused and resumed meanwhile.
func TestQueue_AFewAreDownloadedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.AtOnce = 2
	var jobs []Job
	for n := range 4 {
		repo, file := fmt.Sprintf("acme/m%d-GGUF", n), fmt.Sprintf("m%d-Q4_K_M.gguf", n)
		w.hub.Add(repo, fakehub.Files{file: fakehub.Random(uint64(n)+1, 1<<20)})
		if n < 2 {
			w.hub.Fault(fakehub.Fault{Path: file, StallAtOnce: true})
		}
		jobs = append(jobs, w.start(repo))
		if job := jobs[n]; job.State != Downloading || job.Waiting != (n >= 2) || job.Waiting && (job.BytesPerSecond != 0 ||
			!job.EstimatedCompletion.IsZero()) {
			t.Errorf("the download %d began as %+v", n, job)
		}
	}
	if _, err := w.jobs.Pause(t.Context(), jobs[2].ID); err != nil {
		t.Fatal(err)
	}
	if job, err := w.jobs.Resume(jobs[2].ID); err != nil || !job.Waiting { // behind the others now
		t.Errorf("resumed: %+v, %v", job, err)
	}
	if _, err := w.jobs.Cancel(t.Context(), jobs[0].ID); err != nil { // which makes room
		t.Fatal(err)
	}
	for _, n := range []int{3, 2} {
		if done := w.completes(jobs[n]); done.Waiting {
			t.Errorf("it waits: %+v", done)
		}
	}
	if now, err := w.jobs.Get(jobs[1].ID); err != nil || now.Waiting || now.State != Downloading {
		t.Errorf("the other that ran: %+v, %v", now, err)
	}
	w.jobs.SetAtOnce(1) // a smaller number ends none that runs
	if job := w.start("acme/m0-GGUF"); !job.Waiting {
		t.Errorf("there is room for %+v", job)
	}
	w.jobs.SetAtOnce(2)
	w.await(jobs[0].ID, func(j Job) bool { return !j.Waiting })
}
