package fetch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

// TestDisk_WhatIsElsewhereIsNotFetched finds files in other folders.
func TestDisk_WhatIsElsewhereIsNotFetched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.Elsewhere = func(repo string, sizes map[string]int64) string {
		if repo == tiny && len(sizes) == 1 && sizes[tinyFile] == tinySize {
			return "/elsewhere"
		}
		return ""
	}
	if job := w.start(tiny); job.State != AlreadyDownloaded || job.Dir != "/elsewhere" {
		t.Errorf("%+v", job)
	}
}

// TestDisk_OfAnOlderVersion: a part of another version isn't resumed.
func TestDisk_APartOfAnotherVersionIsThrownAway(t *testing.T) {
	t.Parallel()
	for name, checkpoint := range map[string]string{
		"another size": `{"path":"tiny-Q4_K_M.gguf","size":5,"done":[{"From":0,"To":5}]}`, "no JSON": "{", "none": "",
		"nonsense": `{"path":"tiny-Q4_K_M.gguf","size":1368121,"sha256":"SUM","done":[{"From":9,"To":5},{"From":-3,"To":2}]}`,
		"too much": `{"path":"tiny-Q4_K_M.gguf","size":1368121,"sha256":"SUM","done":[{"From":0,"To":1368121}],"verified":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			part := w.path(tiny + "/" + tinyFile)
			checkpoint := strings.Replace(checkpoint, "SUM", fakehub.Sum(fakehub.Random(1, tinySize)), 1)
			if err := errors.Join(os.MkdirAll(filepath.Dir(part), 0o700), os.WriteFile(part+hub.PartSuffix, []byte("other"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if checkpoint != "" {
				if err := os.WriteFile(part+hub.CheckpointSuffix, []byte(checkpoint), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w.completes(w.start(tiny))
			w.holds(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
		})
	}
}

// TestDisk_DamageOnTheDiskIsMended: if the data on disk is damaged, everything is downloaded again.
func TestDisk_DamageOnTheDiskIsMended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 200 << 10})
	job := w.start(tiny)
	w.await(job.ID, func(j Job) bool { return j.DownloadedBytes >= 200<<10 })
	w.close()
	f, err := os.OpenFile(w.path(tiny+"/"+tinyFile+hub.PartSuffix), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("damage"), 10); err != nil {
		t.Fatal(err)
	}
	f.Close()
	w.hub.Mend()
	w.open()
	w.completes(job)
	w.holds(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
}

// TestDisk_RoomForAllJobs: the bytes that other jobs still need are taken into account.
func TestDisk_RoomForAllJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Add("acme/other", fakehub.Files{"other-Q8_0.gguf": fakehub.Random(2, 1<<20)})
	w.opts.Free = func(string) (int64, error) { return spareBytes + tinySize + 1<<19, nil }
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", StallAtOnce: true})
	job := w.start(tiny)
	_, err := w.jobs.Start(t.Context(), Request{Model: "acme/other"})
	if kindOf(err) != hub.NoSpace || err == nil || !strings.Contains(err.Error(), "beside 1.4 MB of other downloads") {
		t.Error(err)
	}
	w.hub.Mend()
	w.completes(job)
	if _, err := w.jobs.Start(t.Context(), Request{Model: "acme/other"}); err != nil {
		t.Error(err)
	}
}

// TestCancel_LeavesNoProjectorBehind, unless it may belong to another model in the folder.
func TestCancel_LeavesNoProjectorBehind(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]string{"alone": "", "beside a model": "m-Q8_0.gguf"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.hub.Add("acme/m", fakehub.Files{"m-Q4_K_M.gguf": fakehub.Random(1, 1<<20), "mmproj-F16.gguf": fakehub.Random(2, 1000)})
			w.hub.Fault(fakehub.Fault{Path: "m-Q4_K_M.gguf", StallAtOnce: true})
			if other != "" {
				if err := errors.Join(os.MkdirAll(w.path("acme/m"), 0o700), os.WriteFile(w.path("acme/m/"+other), nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			job := w.start("acme/m")
			w.await(job.ID, func(Job) bool {
				_, err := os.Stat(w.path("acme/m/mmproj-F16.gguf"))
				return err == nil
			})
			if _, err := w.jobs.Cancel(t.Context(), job.ID); err != nil {
				t.Fatal(err)
			}
			_, err := os.Stat(w.path("acme/m/mmproj-F16.gguf"))
			if gone := errors.Is(err, os.ErrNotExist); gone != (other == "") {
				t.Errorf("left: %v", w.files())
			}
		})
	}
}
