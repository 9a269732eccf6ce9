//go:build unix

package warm

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/internal/openfiles/openfilestest"
)

// TestStore_WithoutFileDescriptors: that a file can't be opened just now says nothing about it, so no state is deleted.
func TestStore_WithoutFileDescriptors(t *testing.T) {
	openfilestest.Run(t, func(t *testing.T, without func(func())) {
		w := newWorld(t)
		h := w.shelf()
		w.put(h, state(chain("a")))
		w.engineWrites(h, "saved", 1000)
		without(func() {
			if err := w.lay(h, chain("a")); !openfiles.AreExhausted(err) {
				t.Errorf("Lay: %v", err)
			}
			if err := h.Put("saved", state(chain("b"))); !openfiles.AreExhausted(err) {
				t.Errorf("Put: %v", err)
			}
			p := w.print()
			p.Files = []string{os.Args[0]} // wasn't read before
			if _, err := w.Shelf(p); !openfiles.AreExhausted(err) {
				t.Errorf("Shelf: %v", err)
			}
			w.tidy()
			w.DeleteConversation("resp_1")
			w.open()
			w.Configure(Settings{})
			if _, err := w.Shelf(w.print()); !errors.Is(err, ErrOff) {
				t.Errorf("a shelf of a store that couldn't be opened: %v", err)
			}
		})
		if !h.Admits(1000) {
			t.Error("the disk is blamed")
		}
		w.open()
		w.hasOnly(1)
		w.must(w.lay(w.shelf(), chain("a")))
	})
}

// fullVariable is set in the process that [TestPut_AFullDisk] starts.
const fullVariable = "LMCADDY_TEST_FULL_DISK"

// TestPut_AFullDisk is run in a process of its own that can't write another byte, since that is what a full disk is like.
func TestPut_AFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getenv(fullVariable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), fullVariable+"=1")
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, output)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	w := newWorld(t)
	h := w.shelf()
	w.put(h, state(chain("a")))
	w.engineWrites(h, "saved", 1000)
	var before syscall.Rlimit
	w.must(syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	none := before
	none.Cur = 0
	w.must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &none))
	err := h.Put("saved", state(chain("a", "b", "c")))
	admitted := h.Admits(1000)
	laid := w.lay(h, chain("a"))
	w.tidy()
	w.must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
	if !errors.Is(err, syscall.EFBIG) || admitted {
		t.Errorf("Put: %v, another is admitted: %v", err, admitted)
	}
	w.must(laid)
	w.hasOnly(1)
	w.wait(diskPause)
	w.put(h, state(chain("a", "b", "c")))
	w.open()
	w.hasOnly(2)
}

// TestOpen_AFolderOfAnotherUser isn't used: that user could read what is in it.
func TestOpen_AFolderOfAnotherUser(t *testing.T) {
	t.Parallel()
	dir := "/usr"
	if os.Geteuid() == 0 {
		dir = t.TempDir()
		if err := os.Chown(dir, 4711, 4711); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(dir, nil)
	if err != nil || s.Err() == nil {
		t.Errorf("%v, %v", err, s.Err())
	}
	s.Close()
}

// TestOpenPlain_OfAnotherUser: files that others have made, or that aren't files, aren't opened.
func TestOpenPlain_OfAnotherUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	theirs := "/etc/passwd"
	if os.Geteuid() == 0 {
		theirs = filepath.Join(dir, "theirs")
		if err := errors.Join(os.WriteFile(theirs, nil, 0o600), os.Chown(theirs, 4711, 4711)); err != nil {
			t.Fatal(err)
		}
	}
	pipe, link, loop := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "loop")
	ours := filepath.Join(dir, "ours")
	if err := errors.Join(os.WriteFile(ours, nil, 0o600), syscall.Mkfifo(pipe, 0o600), os.Symlink(ours, link), os.Symlink(loop, loop)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{theirs, pipe, link, loop, dir, os.DevNull} {
		file, _, err := openPlain(path, os.O_RDONLY)
		if !errors.Is(err, errDamaged) {
			t.Errorf("%s: %v", path, err)
		}
		if err == nil {
			_ = file.Close()
		}
	}
	file, _, err := openPlain(ours, os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	info, err := os.Lstat(theirs)
	if err != nil || isOurs(info) {
		t.Errorf("%s is ours, %v", theirs, err)
	}
}
