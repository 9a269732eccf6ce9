package warm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// TestOpen_WhatIsNoStateDies: a state whose file or description isn't as it was written is removed, whole.
func TestOpen_WhatIsNoStateDies(t *testing.T) {
	t.Parallel()
	edit := func(path string, change func([]byte) []byte) error {
		content, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(path, change(content), 0o600))
	}
	replace := func(suffix, from, to string) func(*world) error {
		return func(w *world) error {
			return edit(w.path(suffix), func(b []byte) []byte {
				if !bytes.Contains(b, []byte(from)) {
					w.t.Fatalf("%s isn't in %s", from, b)
				}
				return bytes.Replace(b, []byte(from), []byte(to), 1)
			})
		}
	}
	for name, spoil := range map[string]func(*world) error{
		"no description":          func(w *world) error { return os.Remove(w.path(recordSuffix)) },
		"no file":                 func(w *world) error { return os.Remove(w.path(stateSuffix)) },
		"cut off":                 func(w *world) error { return os.Truncate(w.path(stateSuffix), 999) },
		"longer":                  func(w *world) error { return os.Truncate(w.path(stateSuffix), 1001) },
		"the description cut off": func(w *world) error { return os.Truncate(w.path(recordSuffix), 100) },
		"an empty description":    func(w *world) error { return os.Truncate(w.path(recordSuffix), 0) },
		"a huge description":      func(w *world) error { return os.Truncate(w.path(recordSuffix), 1<<40) },
		"another owner":           replace(recordSuffix, `"ann"`, `"bob"`),
		"another checksum":        replace(recordSuffix, `"crc32c":`, `"crc32c":1`),
		"another version":         replace(recordSuffix, `"version":4`, `"version":1`),
		"a field more":            replace(recordSuffix, `"model"`, `"x":1,"model"`),
		"garbage":                 func(w *world) error { return os.WriteFile(w.path(recordSuffix), []byte("\x00\xff"), 0o600) },
		"null":                    func(w *world) error { return os.WriteFile(w.path(recordSuffix), []byte("null"), 0o600) },
		"of another home":         func(w *world) error { return os.Remove(filepath.Join(w.dir, keyFile)) },
		"a key cut off":           func(w *world) error { return os.Truncate(filepath.Join(w.dir, keyFile), 31) },
		"a link for a key": func(w *world) error {
			key, other := filepath.Join(w.dir, keyFile), filepath.Join(w.t.TempDir(), "key")
			return errors.Join(os.Rename(key, other), os.Symlink(other, key))
		},
		"of another print": func(w *world) error {
			folder := filepath.Dir(w.path(stateSuffix))
			return os.Rename(folder, filepath.Join(w.dir, strings.Repeat("0", 32)))
		},
		"under another id": func(w *world) error {
			to := filepath.Join(filepath.Dir(w.path(stateSuffix)), strings.Repeat("0", 32))
			return errors.Join(os.Rename(w.path(stateSuffix), to+stateSuffix), os.Rename(w.path(recordSuffix), to+recordSuffix))
		},
		"a link for a file": func(w *world) error {
			path, other := w.path(stateSuffix), filepath.Join(w.t.TempDir(), "file")
			return errors.Join(os.Rename(path, other), os.Symlink(other, path))
		},
		"a link for a description": func(w *world) error {
			path, other := w.path(recordSuffix), filepath.Join(w.t.TempDir(), "file")
			return errors.Join(os.Rename(path, other), os.Symlink(other, path))
		},
		"a link for a folder": func(w *world) error {
			path, other := filepath.Dir(w.path(stateSuffix)), filepath.Join(w.t.TempDir(), "folder")
			return errors.Join(os.Rename(path, other), os.Symlink(other, path))
		},
		"a file for a folder": func(w *world) error {
			path := filepath.Dir(w.path(stateSuffix))
			return errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte("x"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put(w.shelf(), state(chain("a")))
			w.must(spoil(w))
			w.open()
			w.hasOnly(0)
			if entries, _ := filepath.Glob(filepath.Join(w.dir, strings.Repeat("?", 32))); len(entries) != 0 {
				t.Errorf("left: %v", entries)
			}
			h := w.shelf()
			w.put(h, state(chain("a")))
			w.must(w.lay(h, chain("a")))
		})
	}
}

// TestOpen_LeavesOthersFilesAlone: only what has the names of our own files is removed.
func TestOpen_LeavesOthersFilesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.shelf(), state(chain("a")))
	print := filepath.Dir(w.path(stateSuffix))
	leave := []string{filepath.Join(w.dir, "notes.txt"), filepath.Join(w.dir, "lost+found", "x.kv"), filepath.Join(print, "README")}
	remove := []string{
		filepath.Join(w.dir, ".lmcaddy-0123.tmp"), filepath.Join(print, ".lmcaddy-0123.tmp"), filepath.Join(print, "x.kv"),
		filepath.Join(print, "x.json"), filepath.Join(w.dir, launchFolder, "left", "x"), filepath.Join(w.dir, launchFolder, "y"),
	}
	for _, path := range append(leave, remove...) {
		w.must(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600))
	}
	w.open()
	for _, path := range leave {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	for _, path := range remove {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if len(w.List()) != 1 {
		t.Error("the state is gone")
	}
}

// TestOpen_ALinkToAnotherDisk: an operator may put the folder elsewhere.
func TestOpen_ALinkToAnotherDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := filepath.Join(t.TempDir(), "disk")
	w.must(os.RemoveAll(w.dir), os.Mkdir(other, 0o755), os.Symlink(other, w.dir))
	w.open()
	w.dir = other
	h := w.shelf()
	w.put(h, state(chain("a")))
	w.hasOnly(1)
	if info, err := os.Stat(other); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if !strings.HasPrefix(h.Folder(), other) {
		t.Errorf("the sandbox would have to know that %s is a link", h.Folder())
	}
}

// TestOpen_KeepsTheKey: chains mean the same after a restart.
func TestOpen_KeepsTheKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := w.Key()
	w.must(os.Chmod(filepath.Join(w.dir, keyFile), 0o644))
	w.open()
	if w.Key() != key {
		t.Error("another key")
	}
	if info, err := os.Stat(filepath.Join(w.dir, keyFile)); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if newWorld(t).Key() == key {
		t.Error("two homes have the same key")
	}
}

// TestOpen_AFolderThatCannotBeUsed: the server starts, the log says what to do, and nothing is kept.
func TestOpen_AFolderThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *world) error{
		"a file":        func(w *world) error { return errors.Join(os.RemoveAll(w.dir), os.WriteFile(w.dir, nil, 0o600)) },
		"a broken link": func(w *world) error { return errors.Join(os.RemoveAll(w.dir), os.Symlink("nowhere", w.dir)) },
		"below a file": func(w *world) error {
			return errors.Join(os.RemoveAll(filepath.Dir(w.dir)), os.WriteFile(filepath.Dir(w.dir), nil, 0o600))
		},
		"a folder for a key": func(w *world) error {
			key := filepath.Join(w.dir, keyFile)
			return errors.Join(os.Remove(key), os.MkdirAll(filepath.Join(key, "x"), 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put(w.shelf(), state(chain("a")))
			before := w.Key()
			w.must(spoil(w))
			w.open()
			w.Configure(Settings{Off: true})
			w.logged("can't be used", 0)
			w.Configure(Settings{Size: 1})
			w.logged("can't be used", 1)
			w.logged("warm off", 1)
			w.logged("folder="+w.dir, 1)
			if w.Err() == nil {
				t.Error("there is no error")
			}
			if key := w.Key(); key == before || key == 0 {
				t.Error("there is no key of its own")
			}
			if h, err := w.Shelf(w.print()); !errors.Is(err, ErrOff) || h != nil {
				t.Errorf("a shelf: %v", err)
			}
			w.DeleteConversation("x")
			w.DeleteOwner("x")
			w.DeleteModel("x")
			if n, bytes := w.Clear(""); n != 0 || bytes != 0 || len(w.List()) != 0 || len(w.Counts()) != 0 {
				t.Error("something is kept")
			}
			w.tidy()
			w.Close()
		})
	}
	if _, err := Open("warm", nil); err == nil {
		t.Error("a relative path is taken")
	}
}

// TestOpen_OfThousands is fast: nothing but the descriptions is read.
func TestOpen_OfThousands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	const many = 1000
	folder := filepath.Join(w.dir, h.group.name)
	w.must(os.Mkdir(folder, 0o700))
	long := make([]string, 100)
	for i := range many {
		long[0] = fmt.Sprint(i)
		c := chain(long...)
		id := fmt.Sprintf("%032x", i)
		r := record{Listed: Listed{Model: "ann/model", State: prefix.State{Prompt: c, PromptTokens: 1, Tokens: 1, Bytes: 1}}}
		content, err := r.encode(&w.secret, h.group.place(id))
		w.must(err, os.WriteFile(filepath.Join(folder, id+recordSuffix), content, 0o600))
		w.must(os.WriteFile(filepath.Join(folder, id+stateSuffix), []byte("x"), 0o600))
	}
	began := time.Now()
	w.open()
	t.Logf("%d states in %v", many, time.Since(began))
	w.hasOnly(many)
}

// TestOpen_AClockThatWasWrong: what was used in the future was used now.
func TestOpen_AClockThatWasWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.shelf(), state(chain("a")))
	w.wait(-48 * time.Hour)
	w.open()
	if used := w.List()[0].Used; used.After(w.now()) {
		t.Errorf("used at %v", used)
	}
	w.Configure(Settings{MaxAge: 24 * time.Hour})
	w.hasOnly(1)
}

// TestOpen_WhenStatesWereUsed: the order of use outlives a restart, and a crash an hour later.
func TestOpen_WhenStatesWereUsed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){"closed": func(w *world) { w.Close() }, "an hour later": (*world).tidyUp} {
		w := newWorld(t)
		h := w.shelf()
		w.put(h, state(chain("a")))
		w.wait(time.Minute)
		w.must(w.lay(h, chain("a")))
		used := w.now()
		end(w)
		w.wait(time.Minute)
		w.open()
		if got := w.List()[0].Used; !got.Equal(used) {
			t.Errorf("%s: used at %v, want %v", name, got, used)
		}
		w.must(w.lay(w.shelf(), chain("a")))
	}
}

func (w *world) tidyUp() { w.tidy() }

// TestLedger_OfADamagedFile: what is written today is then counted from nothing.
func TestLedger_OfADamagedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), ledgerFile)
	for content, want := range map[string]int64{
		`{"day":"2026-11-22","bytes":7}`: 7, `{"day":"2026-11-22","bytes":-7}`: 0, `{"day":"2026-11-22","bytes":9223372036854775807}`: 0, "": 0,
		"null": 0, "[]": 0, `{"bytes":"x"}`: 0,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var l ledger
		if l.read(path); l.Bytes != want {
			t.Errorf("%s: %d", content, l.Bytes)
		}
		if content, err := json.Marshal(&l); err != nil {
			t.Errorf("%s, %v", content, err)
		}
	}
}
