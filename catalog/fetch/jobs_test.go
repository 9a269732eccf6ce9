package fetch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

var idForm = regexp.MustCompile(`^job_[0-9a-f]{10}$`)

func TestStart_FetchesAModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := w.start(tiny)
	if !idForm.MatchString(job.ID) || job.State != Downloading || job.TotalBytes != tinySize || job.StartedAt.IsZero() || !job.CompletedAt.IsZero() {
		t.Errorf("it started as %+v", job)
	}
	done := w.completes(job)
	if done.DownloadedBytes != tinySize || done.CompletedAt.Before(done.StartedAt) || done.Reason != "" || !done.EstimatedCompletion.IsZero() {
		t.Errorf("it ended as %+v", done)
	}
	if done.Dir != w.path(tiny) || done.Quantization != "Q4_K_M" {
		t.Errorf("it is %s in %s", done.Quantization, done.Dir)
	}
	if diff := cmp.Diff([]string{tiny + "/" + tinyFile}, w.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	w.holds(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
	if n := w.hub.Sent(tinyFile); n != tinySize {
		t.Errorf("%d bytes were sent", n)
	}
}

// TestStart_TheProjectorComesAlong, with all parts and no other files. The first part comes last.
func TestStart_TheProjectorComesAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := fakehub.Files{
		"Q4_K_M/big-Q4_K_M-00001-of-00003.gguf": fakehub.Random(1, 2<<20),
		"Q4_K_M/big-Q4_K_M-00002-of-00003.gguf": fakehub.Random(2, 1<<20),
		"Q4_K_M/big-Q4_K_M-00003-of-00003.gguf": fakehub.Random(3, 1<<10),
		"big-Q8_0.gguf":                         fakehub.Random(4, 5<<20),
		"mmproj-F16.gguf":                       fakehub.Random(5, 1<<20),
		"mmproj-F32.gguf":                       fakehub.Random(6, 2<<20),
		"imatrix.gguf":                          fakehub.Random(7, 1<<10),
		"README.md":                             fakehub.Text("big"),
	}
	w.hub.Add("acme/big-GGUF", files)
	w.hub.PageSize(2)
	first := w.path("acme/big-GGUF/big-Q4_K_M-00001-of-00003.gguf")
	w.opts.Listed = func(_ context.Context, file string) error {
		if _, err := os.Stat(first); err != nil || file != first {
			t.Errorf("%s is to be listed: %v", file, err)
		}
		return nil
	}
	w.completes(w.start("acme/big-GGUF"))
	for from, content := range files {
		if strings.HasPrefix(from, "Q4_K_M/") || from == "mmproj-F16.gguf" {
			w.holds("acme/big-GGUF/"+filepath.Base(from), content)
		}
	}
	if n := len(w.files()); n != 4 {
		t.Errorf("%d files: %v", n, w.files())
	}
}

// TestStart_AnMLXModelIsTakenAsAWhole, with its folders, but without files that don't belong to the model.
func TestStart_AnMLXModelIsTakenAsAWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	small := fakehub.Text(`{"a": 1}`)
	w.hub.Add("acme/Tiny-4bit", fakehub.Files{
		"config.json": small, "tokenizer.json": small, "model-00001-of-00002.safetensors": fakehub.Random(1, 2<<20),
		"model-00002-of-00002.safetensors": fakehub.Random(2, 1<<20), "1_Pooling/config.json": small, "chat_template.jinja": small,
		"README.md": small, ".gitattributes": small, "pytorch_model.bin": small, "onnx/model.onnx": small, "consolidated.safetensors": small,
	})
	job := w.completes(w.start("acme/Tiny-4bit"))
	want := []string{
		"acme/Tiny-4bit/1_Pooling/config.json", "acme/Tiny-4bit/chat_template.jinja", "acme/Tiny-4bit/config.json",
		"acme/Tiny-4bit/model-00001-of-00002.safetensors", "acme/Tiny-4bit/model-00002-of-00002.safetensors", "acme/Tiny-4bit/tokenizer.json",
	}
	if diff := cmp.Diff(want, w.files()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last := job.Files[len(job.Files)-1]; last != "acme/Tiny-4bit/config.json" || job.Quantization != "4bit" {
		t.Errorf("%s comes last, the quantization is %q", last, job.Quantization)
	}
}

func TestStart_WhatIsThereIsNotFetched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.completes(w.start(tiny))
	w.hub.Quiet(t)
	w.hub.Forget()
	for _, model := range []string{w.hub.URL + "/" + tiny, w.hub.URL + "/" + tiny + "/tree/main", tiny, w.hub.URL + "/ACME/Tiny-gguf"} {
		job, err := w.jobs.Start(t.Context(), Request{Model: model})
		if err != nil || job.State != AlreadyDownloaded || job.ID != "" || job.TotalBytes != 0 || !job.StartedAt.IsZero() || job.Dir != w.path(tiny) {
			t.Errorf("%s: %+v, %v", model, job, err)
		}
	}
	if n := w.hub.Sent(tinyFile); n != 0 {
		t.Errorf("%d bytes were sent", n)
	}
	w.hub.Kill() // the same request needs no hub
	if job, err := w.jobs.Start(t.Context(), Request{Model: w.hub.URL + "/" + tiny}); err != nil || job.State != AlreadyDownloaded {
		t.Errorf("with the hub down: %+v, %v", job, err)
	}
	if n := len(w.jobs.List()); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

// TestStart_AModelThatWasDeletedIsFetchedAgain, by a new job.
func TestStart_AModelThatWasDeletedIsFetchedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.completes(w.start(tiny))
	if err := os.RemoveAll(w.path("acme")); err != nil {
		t.Fatal(err)
	}
	if second := w.completes(w.start(tiny)); second.ID == first.ID {
		t.Error("the same job")
	}
	w.holds(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
}

// TestStart_JoinsTheRunningJob, even with concurrent requests.
func TestStart_JoinsTheRunningJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 1000})
	w.open()
	var ids sync.Map
	var all sync.WaitGroup
	for range 8 {
		for _, model := range []string{w.hub.URL + "/" + tiny, tiny, w.hub.URL + "/" + tiny + "/resolve/main/" + tinyFile} {
			all.Go(func() {
				job, err := w.jobs.Start(t.Context(), Request{Model: model})
				if err != nil {
					t.Error(err)
				}
				ids.Store(job.ID, true)
			})
		}
	}
	all.Wait()
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d jobs", n)
	}
	w.hub.Mend()
	for _, job := range w.jobs.List() {
		w.completes(job)
	}
}

// TestStart_TwoJobsAtATime share only the projector.
func TestStart_TwoJobsAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q4, q8, eyes := fakehub.Random(1, 3<<20), fakehub.Random(2, 4<<20), fakehub.Random(3, 1<<20+5)
	w.hub.Add("acme/eyes", fakehub.Files{"eyes-Q4_K_M.gguf": q4, "eyes-Q8_0.gguf": q8, "mmproj-eyes-F16.gguf": eyes})
	w.open()
	var jobs []Job
	for _, q := range []string{"Q4_K_M", "q8-0"} {
		job, err := w.jobs.Start(t.Context(), Request{Model: w.hub.URL + "/acme/eyes", Quantization: q})
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, job)
	}
	if jobs[0].ID == jobs[1].ID {
		t.Error("one job for two quantizations")
	}
	for _, job := range jobs {
		w.completes(job)
	}
	w.holds("acme/eyes/eyes-Q4_K_M.gguf", q4)
	w.holds("acme/eyes/eyes-Q8_0.gguf", q8)
	w.holds("acme/eyes/mmproj-eyes-F16.gguf", eyes)
	w.hub.Quiet(t)
	if n := w.hub.Sent("mmproj-eyes-F16.gguf"); n != eyes.Size() {
		t.Errorf("%d bytes of the projector were sent", n)
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 200 << 10, Times: 4})
	job := w.start(tiny)
	w.await(job.ID, func(j Job) bool {
		return j.DownloadedBytes >= 200<<10 && j.BytesPerSecond > 0 && !j.EstimatedCompletion.IsZero()
	})
	paused, err := w.jobs.Pause(t.Context(), job.ID)
	if err != nil || paused.State != Paused || paused.DownloadedBytes < 200<<10 || paused.BytesPerSecond != 0 {
		t.Fatalf("%+v, %v", paused, err)
	}
	if again, err := w.jobs.Pause(t.Context(), job.ID); err != nil || again.State != Paused {
		t.Errorf("paused twice: %+v, %v", again, err)
	}
	kept := w.checkpointed(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
	if kept.bytes() != paused.DownloadedBytes {
		t.Errorf("%d bytes are kept of %d", kept.bytes(), paused.DownloadedBytes)
	}
	w.hub.Mend()
	w.hub.Quiet(t)
	w.hub.Forget()
	if joined := w.start(tiny); joined.ID != job.ID || joined.State != Downloading { // asking again goes on
		t.Errorf("%+v", joined)
	}
	if done := w.completes(job); !done.StartedAt.Equal(job.StartedAt) {
		t.Errorf("it started at %v and %v", job.StartedAt, done.StartedAt)
	}
	w.fetchedNothingOf(kept)
	w.holds(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
	for name, err := range map[string]error{
		"pause": second(w.jobs.Pause(t.Context(), job.ID)), "resume": second(w.jobs.Resume(job.ID)), "cancel": second(w.jobs.Cancel(t.Context(), job.ID)),
	} {
		if kindOf(err) != hub.Conflict {
			t.Errorf("%s of a completed job: %v", name, err)
		}
	}
}

func second(_ Job, err error) error { return err }

func TestCancel_LeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 200 << 10})
	job := w.start(tiny)
	w.await(job.ID, func(j Job) bool { return j.DownloadedBytes > 0 })
	cancelled, err := w.jobs.Cancel(t.Context(), job.ID)
	if err != nil || cancelled.State != Failed || !strings.Contains(cancelled.Reason, "cancelled") || cancelled.DownloadedBytes != 0 {
		t.Errorf("%+v, %v", cancelled, err)
	}
	if _, err := os.Stat(w.path("acme")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left: %v", w.files())
	}
	w.hub.Mend()
	if _, err := w.jobs.Resume(job.ID); err != nil {
		t.Fatal(err)
	}
	w.completes(job)
	w.holds(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
}

// TestCancel_OfAJobWhoseFilesAreInPlace deletes them unless the job is completed, but no file that existed before.
func TestCancel_OfAJobWhoseFilesAreInPlace(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ isThere, isRestarted, isListed bool }{
		"fetched": {}, "there before": {isThere: true}, "after a restart": {isRestarted: true}, "completed": {isListed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			placed := make(chan struct{}, 2)
			w.opts.Listed = func(ctx context.Context, _ string) error {
				placed <- struct{}{}
				if !tt.isListed {
					<-ctx.Done()
				}
				return context.Cause(ctx)
			}
			w.hub.Add("acme/two", fakehub.Files{"m-00001-of-00002.gguf": fakehub.Random(1, 1000), "m-00002-of-00002.gguf": fakehub.Random(2, 1000)})
			before := w.path("acme/two/m-00002-of-00002.gguf")
			if tt.isThere {
				if err := errors.Join(os.MkdirAll(filepath.Dir(before), 0o700), os.WriteFile(before, make([]byte, 1000), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			job := w.start("acme/two")
			<-placed
			if tt.isRestarted {
				w.close()
				w.open()
				<-placed
			}
			if tt.isListed {
				w.completes(job)
				if _, err := w.jobs.Cancel(t.Context(), job.ID); kindOf(err) != hub.Conflict || !strings.Contains(err.Error(), "complete") {
					t.Error(err)
				}
				w.holds("acme/two/m-00001-of-00002.gguf", fakehub.Random(1, 1000))
				return
			}
			if cancelled, err := w.jobs.Cancel(t.Context(), job.ID); err != nil || cancelled.State != Failed || (cancelled.DownloadedBytes == 0) == tt.isThere {
				t.Errorf("%+v, %v", cancelled, err)
			}
			_, first := os.Stat(w.path("acme/two/m-00001-of-00002.gguf"))
			_, second := os.Stat(before)
			if first == nil || (second == nil) != tt.isThere {
				t.Errorf("left: %v", w.files())
			}
		})
	}
}

func TestJobs_AreKnownById(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jobs := w.open()
	_, _, watched := jobs.Subscribe("job_x")
	for name, err := range map[string]error{
		"get": second(jobs.Get("job_x")), "pause": second(jobs.Pause(t.Context(), "job_x")), "resume": second(jobs.Resume("job_x")),
		"cancel": second(jobs.Cancel(t.Context(), "../x")), "watch": watched,
	} {
		if kindOf(err) != hub.JobNotFound || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
