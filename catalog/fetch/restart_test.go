package fetch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

// TestRestart_GoesOnWithWhatWasDownloading, and with no other jobs.
func TestRestart_GoesOnWithWhatWasDownloading(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Add("acme/other", fakehub.Files{"other-Q8_0.gguf": fakehub.Random(2, 1<<20)})
	w.hub.Add("acme/third", fakehub.Files{"third-Q8_0.gguf": fakehub.Random(3, 100)})
	third := w.completes(w.start("acme/third"))
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 200 << 10})
	job, other := w.start(tiny), w.start("acme/other")
	w.await(other.ID, func(j Job) bool { return j.DownloadedBytes > 0 })
	if _, err := w.jobs.Pause(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	w.await(job.ID, func(j Job) bool { return j.DownloadedBytes > 0 })
	w.close()
	kept := w.checkpointed(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
	if kept.bytes() == 0 {
		t.Error("nothing is kept")
	}
	w.hub.Mend()
	w.hub.Quiet(t)
	w.hub.Forget()
	w.open()
	w.completes(job)
	w.fetchedNothingOf(kept)
	w.holds(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
	for id, want := range map[string]State{job.ID: Completed, other.ID: Paused, third.ID: Completed} {
		got, err := w.jobs.Get(id)
		if err != nil || got.State != want || got.TotalBytes == 0 || got.DownloadedBytes == 0 || want == Completed &&
			got.DownloadedBytes != got.TotalBytes {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if n := len(w.jobs.List()); n != 3 {
		t.Errorf("%d jobs", n)
	}
}

// TestRestart_PassesOverBadRecords: edited records are ignored.
func TestRestart_PassesOverBadRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.MkdirAll(w.opts.State, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"job_0000000001.json": "{", "job_0000000002.json": `{"id":"job_0000000002","state":"downloading","folder":"a/b","files":[{"path":"x","local":"a/b/../../../x"}]}`,
		"job_0000000003.json": `{"id":"job_0000000003","state":"downloading","folder":"../b","files":[{"path":"x","local":"../b/x"}]}`,
		"job_0000000004.json": `{"id":"job_0000000004","state":"dancing","folder":"a/b","files":[{"path":"x","local":"a/b/x"}]}`, "other.txt": "x", "a.tmp": "x",
	} {
		if err := os.WriteFile(filepath.Join(w.opts.State, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all := w.open().List(); len(all) > 0 {
		t.Errorf("jobs: %+v", all)
	}
}

// TestListed_IsWaitedFor before a job is completed.
func TestListed_IsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked, answer := make(chan string), make(chan error)
	w.opts.Listed = func(_ context.Context, file string) error {
		asked <- file
		return <-answer
	}
	job := w.start(tiny)
	if file := <-asked; file != w.path(tiny+"/"+tinyFile) {
		t.Errorf("asked for %s", file)
	}
	if now, _ := w.jobs.Get(job.ID); now.State != Downloading || now.DownloadedBytes != tinySize {
		t.Errorf("it is %+v", now)
	}
	answer <- errors.New("it is no model")
	failed := w.await(job.ID, Job.Ended)
	if failed.State != Failed || failed.Kind != hub.Internal || !strings.Contains(failed.Reason, "it is no model") {
		t.Errorf("it is %+v", failed)
	}
	if _, err := w.jobs.Resume(job.ID); err != nil {
		t.Fatal(err)
	}
	<-asked
	answer <- nil
	w.completes(job)
}

func TestWatch_HasTheLatestAndEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", BytesPerSecond: 20 << 20})
	job := w.start(tiny)
	updates, stop, err := w.jobs.Subscribe(job.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	last := Job{}
	for now := range updates {
		if now.DownloadedBytes < last.DownloadedBytes {
			t.Errorf("from %d bytes to %d", last.DownloadedBytes, now.DownloadedBytes)
		}
		last = now
	}
	if last.State != Completed {
		t.Errorf("the last was %+v", last)
	}
	updates, stopped, err := w.jobs.Subscribe(job.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer stopped()
	if now := <-updates; now.State != Completed {
		t.Errorf("afterwards: %+v", now)
	}
	if _, ok := <-updates; ok {
		t.Error("it goes on")
	}
}

func TestWatch_EndsWithEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", StallAtOnce: true})
	job := w.start(tiny)
	updates, stop, err := w.jobs.Subscribe(job.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	w.close()
	deadline := time.After(patience)
	for {
		select {
		case _, ok := <-updates:
			if !ok {
				return
			}
		case <-deadline:
			t.Fatal("it doesn't end")
		}
	}
}

// TestSubscribe_NeverDelaysAJob: a slow subscriber gets the latest state later.
func TestSubscribe_NeverDelaysAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", BytesPerSecond: 20 << 20})
	job := w.start(tiny)
	updates, stop, err := w.jobs.Subscribe(job.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	w.completes(job)
	if now := <-updates; now.State != Completed {
		t.Errorf("the latest is %+v", now)
	}
}
