//go:build unix

package fetch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

// TestDisk_NothingIsWrittenThroughLinks that lead out of the models folder.
func TestDisk_NothingIsWrittenThroughLinks(t *testing.T) {
	t.Parallel()
	outside := func(w *world) string { return filepath.Join(w.home, "outside") }
	for name, c := range map[string]struct {
		link   string
		reason string
	}{
		"the publisher":   {"acme", "acme in the models folder is a link"},
		"the repository":  {tiny, tiny + " in the models folder is a link"},
		"the part":        {tiny + "/" + tinyFile + hub.PartSuffix, ""},
		"the checkpoint":  {tiny + "/" + tinyFile + hub.CheckpointSuffix, ""},
		"the file itself": {tiny + "/" + tinyFile, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if err := os.MkdirAll(filepath.Dir(w.path(c.link)), 0o700); err != nil {
				t.Fatal(err)
			}
			target := outside(w)
			if c.reason != "" {
				if err := os.Mkdir(target, 0o700); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, w.path(c.link)); err != nil {
				t.Fatal(err)
			}
			job := w.start(tiny)
			if c.reason == "" {
				w.completes(job)
				w.holds(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
				if text, err := os.ReadFile(target); err != nil || string(text) != "mine" {
					t.Errorf("outside there is %d bytes, %v", len(text), err)
				}
				return
			}
			if failed := w.await(job.ID, Job.Ended); failed.State != Failed || !strings.Contains(failed.Reason, c.reason) {
				t.Errorf("%s: %s", failed.State, failed.Reason)
			}
			if entries, err := os.ReadDir(target); err != nil || len(entries) > 0 {
				t.Errorf("outside: %v, %v", entries, err)
			}
		})
	}
}

// TestDisk_ALinkedModelIsThere: users link their models, which aren't downloaded again.
func TestDisk_ALinkedModelIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine := filepath.Join(w.home, "mine")
	if err := errors.Join(os.MkdirAll(mine, 0o700), os.MkdirAll(w.path("acme"), 0o700), os.Symlink(mine, w.path(tiny)),
		os.WriteFile(filepath.Join(mine, tinyFile), make([]byte, tinySize), 0o600)); err != nil {
		t.Fatal(err)
	}
	if job := w.start(tiny); job.State != AlreadyDownloaded {
		t.Errorf("%+v", job)
	}
}

func TestDisk_Full(t *testing.T) {
	t.Parallel()
	err := diskError("writing a.part", &os.PathError{Op: "write", Path: "a.part", Err: syscall.ENOSPC})
	f, ok := errors.AsType[*hub.Error](err)
	if !ok || f.Retry || kindOf(err) != hub.NoSpace || !strings.Contains(err.Error(), "resume the download") {
		t.Error(err)
	}
}
