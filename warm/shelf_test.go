package warm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// TestShelf_AStatesWay follows a state from one launch to the next, before and after a restart.
func TestShelf_AStatesWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	st := state(chain("system", "question"))
	content := w.put(h, st)
	h.Close()
	if _, err := os.Stat(h.Folder()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of a launch that has ended: %v", err)
	}
	for range 2 {
		h := w.shelf()
		found, ok := h.Find(Query{Owner: "ann", Private: true, Prompt: chain("system", "question", "answer", "more"), Context: 1000})
		want := Found{ID: found.ID, Common: 200, Tokens: 210, Bytes: 1000}
		if diff := cmp.Diff(want, found); !ok || diff != "" {
			t.Fatalf("found: %v (-want +got):\n%s", ok, diff)
		}
		file, err := h.Lay(t.Context(), found.ID)
		w.must(err)
		got, err := os.ReadFile(filepath.Join(h.Folder(), file))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("the engine gets %d bytes, %v", len(got), err)
		}
		h.Lift(file)
		if left, _ := os.ReadDir(h.Folder()); len(left) != 0 {
			t.Errorf("left in the folder: %v", left)
		}
		h.Judge(found.ID, 200, 199)
		w.Close()
		w.open()
	}
	w.hasOnly(1)
}

func TestShelf_Find(t *testing.T) {
	t.Parallel()
	of := func(owner string, st prefix.State) prefix.State { st.Owner = owner; return st }
	sized := func(bytes int64, st prefix.State) prefix.State { st.Bytes = bytes; return st }
	text := chain("system", "a", "b")
	for name, tt := range map[string]struct {
		states []prefix.State
		query  Query
		want   Found // without ID
	}{
		"nothing is kept": {nil, Query{Prompt: text}, Found{}},
		"the same prompt": {[]prefix.State{state(text)}, Query{Prompt: text}, Found{Common: 300, Tokens: 310, Bytes: 1000}},
		"no prompt":       {[]prefix.State{state(text)}, Query{}, Found{}},
		"another prompt":  {[]prefix.State{state(text)}, Query{Prompt: chain("other", "a", "b")}, Found{}},
		"only the beginning": {
			[]prefix.State{state(text)}, Query{Prompt: chain("system", "x")}, Found{Common: 100, Tokens: 310, Bytes: 1000},
		},
		"the longest of several": {
			[]prefix.State{state(chain("system", "a", "b", "c", "d")), state(chain("system"))},
			Query{Prompt: chain("system", "a", "b", "c", "d", "e")},
			Found{Common: 500, Tokens: 510, Bytes: 1000},
		},
		"one that is continued rather than one that isn't": {
			[]prefix.State{sized(2000, state(chain("system"))), sized(500, state(chain("system", "a", "b")))},
			Query{Prompt: chain("system", "x")},
			Found{Common: 100, Tokens: 110, Bytes: 2000},
		},
		"the smaller of two": {
			[]prefix.State{sized(2000, state(chain("system", "a"))), sized(1500, state(chain("system", "b")))},
			Query{Prompt: chain("system", "x")},
			Found{Common: 100, Tokens: 210, Bytes: 1500},
		},
		"one that fits the context": {
			[]prefix.State{state(chain("system", "a", "b", "c", "d")), state(chain("system"))},
			Query{Prompt: chain("system", "a", "b"), Context: 200},
			Found{Common: 100, Tokens: 110, Bytes: 1000},
		},
		"one that fits exactly": {[]prefix.State{state(text)}, Query{Prompt: text, Context: 310}, Found{Common: 300, Tokens: 310, Bytes: 1000}},
		"of another owner":      {[]prefix.State{of("bob", state(text))}, Query{Owner: "ann", Prompt: text}, Found{Common: 300, Tokens: 310, Bytes: 1000}},
		"of another owner, in private": {
			[]prefix.State{of("bob", state(text)), of("ann", state(chain("system")))},
			Query{Owner: "ann", Private: true, Prompt: text},
			Found{Common: 100, Tokens: 110, Bytes: 1000},
		},
		"of nobody, in private": {[]prefix.State{of("bob", state(text))}, Query{Private: true, Prompt: text}, Found{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.shelf()
			for _, st := range tt.states {
				w.put(h, st)
			}
			got, ok := h.Find(tt.query)
			if ok != (tt.want != Found{}) {
				t.Errorf("found: %v", ok)
			}
			got.ID = ""
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestShelf_PromptsWithoutWeight: a chain may be all opaque and weightless.
func TestShelf_PromptsWithoutWeight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.put(h, state(prefix.Chain{{Sum: prefix.Sum{1}}, {Sum: prefix.Sum{2}}}))
	if got := w.finds(h, prefix.Chain{{Sum: prefix.Sum{1}}}); got != 0 {
		t.Errorf("%d tokens in common", got)
	}
	if got := w.finds(h, prefix.Chain{{Sum: prefix.Sum{1}}, {Sum: prefix.Sum{2}}}); got != 200 {
		t.Errorf("%d tokens in common", got)
	}
}

// TestShelf_OfOtherLaunches: what makes a state useless makes it invisible.
func TestShelf_OfOtherLaunches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put(w.shelf(), state(chain("a")))
	moved := filepath.Join(t.TempDir(), "other.gguf")
	w.must(os.WriteFile(moved, []byte("weights"), 0o600))
	changed := filepath.Join(t.TempDir(), "model.gguf")
	w.must(os.WriteFile(changed, []byte("Weights"), 0o600))
	for name, tt := range map[string]struct {
		change func(*Print)
		want   bool
	}{
		"the same":              {func(*Print) {}, true},
		"the file moved":        {func(p *Print) { p.Files = []string{moved} }, true},
		"the file changed":      {func(p *Print) { p.Files = []string{changed} }, false},
		"a projector":           {func(p *Print) { p.Files = []string{w.model, moved} }, false},
		"another model":         {func(p *Print) { p.Model = "ann/other" }, false},
		"another engine":        {func(p *Print) { p.Engine = "llama" }, false},
		"another build":         {func(p *Print) { p.Build = "b2" }, false},
		"another architecture":  {func(p *Print) { p.Architecture = "qwen" }, false},
		"other arguments":       {func(p *Print) { p.Launch = "-np 2" }, false},
		"words that are parted": {func(p *Print) { p.Engine, p.Build = "llama.cp", "pb1" }, false},
	} {
		p := w.print()
		tt.change(&p)
		if _, ok := w.shelfOf(p).Find(Query{Prompt: chain("a")}); ok != tt.want {
			t.Errorf("%s: found %v, want %v", name, ok, tt.want)
		}
	}
	p := w.print()
	p.Files = append(p.Files, filepath.Join(w.dir, "none"))
	if _, err := w.Shelf(p); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is missing: %v", err)
	}
	p.Files = []string{w.dir}
	if _, err := w.Shelf(p); err == nil {
		t.Error("a folder was taken for a file")
	}
}

// TestShelf_FoldersAreTheirOwn: two launches at a time share the states, not the folder.
func TestShelf_FoldersAreTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.shelf(), w.shelf()
	if a.Folder() == b.Folder() {
		t.Error("one folder for two launches")
	}
	info, err := os.Stat(a.Folder())
	w.must(err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the folder's mode is %v", info.Mode())
	}
	w.put(a, state(chain("a")))
	a.Close()
	a.Close()
	if w.finds(b, chain("a")) != 100 || w.lay(b, chain("a")) != nil {
		t.Error("the state isn't there for the other launch")
	}
	if _, ok := a.Find(Query{Prompt: chain("a")}); ok || a.Admits(1) {
		t.Error("a closed shelf is of use")
	}
	if err := a.Put("x", state(chain("b"))); !errors.Is(err, ErrOff) {
		t.Errorf("Put on a closed shelf: %v", err)
	}
}

// TestLay_WhatIsWrongIsDeleted: no engine ever gets a file that isn't as it was written.
func TestLay_WhatIsWrongIsDeleted(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *world, path string) error{
		"cut off by a byte": func(_ *world, path string) error { return os.Truncate(path, 999) },
		"empty":             func(_ *world, path string) error { return os.Truncate(path, 0) },
		"longer":            func(_ *world, path string) error { return os.Truncate(path, 1001) },
		"a bit flipped": func(_ *world, path string) error {
			content, err := os.ReadFile(path)
			content[700] ^= 4
			return errors.Join(err, os.WriteFile(path, content, 0o600))
		},
		"gone": func(_ *world, path string) error { return os.Remove(path) },
		"a folder": func(_ *world, path string) error {
			return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
		},
		"a link to the same content": func(w *world, path string) error {
			other := filepath.Join(w.t.TempDir(), "elsewhere")
			return errors.Join(os.Rename(path, other), os.Symlink(other, path))
		},
		"the whole folder gone": func(_ *world, path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.shelf()
			w.put(h, state(chain("a")))
			w.must(spoil(w, w.path(stateSuffix)))
			if err := w.lay(h, chain("a")); err == nil {
				t.Error("it is laid")
			}
			w.hasOnly(0)
			if left, _ := os.ReadDir(h.Folder()); len(left) != 0 {
				t.Errorf("left in the folder: %v", left)
			}
			if c := w.Counts()[0]; c.Refused != 1 || c.Restores != 0 {
				t.Errorf("%+v", c)
			}
			w.put(h, state(chain("a"))) // life goes on
			w.must(w.lay(h, chain("a")))
		})
	}
}

// TestChecksum: a file that changes while it is read isn't what it was.
func TestChecksum(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]bool{"state": true, "stat": false, "states": false, "": false} {
		if _, err := checksum(strings.NewReader(content), 5); (err == nil) != want || err != nil && !isLost(err) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestLay_ACopyWhereLinksAreImpossible is that of a file system without hard links.
func TestLay_ACopyWhereLinksAreImpossible(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := filepath.Join(t.TempDir(), "copy")
	w.must(copyTo(to, bytes.NewReader([]byte("state"))))
	if got, err := os.ReadFile(to); err != nil || string(got) != "state" {
		t.Errorf("%q, %v", got, err)
	}
	if err := copyTo(to, bytes.NewReader(nil)); err == nil || isLost(err) {
		t.Errorf("a copy over another file: %v", err)
	}
	if err := copyTo(filepath.Join(to, "x", "y"), bytes.NewReader(nil)); err == nil || isLost(err) {
		t.Errorf("a copy into no folder: %v", err)
	}
}

// TestLay_TheFolderIsGone: that the engine's folder is gone says nothing about the state.
func TestLay_TheFolderIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.put(h, state(chain("a")))
	w.must(os.RemoveAll(h.Folder()))
	if w.lay(h, chain("a")) == nil {
		t.Error("laid into nothing")
	}
	w.hasOnly(1)
	w.must(w.lay(w.shelf(), chain("a")))
}

// TestLay_UnknownStates: ids and names of files are only looked up.
func TestLay_UnknownStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.put(h, state(chain("a")))
	for _, id := range []string{"", "..", "x", "../../key"} {
		if _, err := h.Lay(t.Context(), id); err == nil {
			t.Errorf("%q is laid", id)
		}
		h.Drop(id, nil)
		h.Judge(id, 1, 1)
	}
	for _, name := range []string{"", ".", "..", "../../key", filepath.Join(w.dir, keyFile), "a/b"} {
		h.Lift(name)
		if err := h.Put(name, state(chain("b"))); err == nil {
			t.Errorf("%q is put", name)
		}
	}
	w.hasOnly(1)
	if _, err := os.Stat(filepath.Join(w.dir, keyFile)); err != nil {
		t.Error(err)
	}
}

func TestShelf_Drop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.put(h, state(chain("a")))
	found, _ := h.Find(Query{Prompt: chain("a")})
	h.Drop(found.ID, errors.New("the engine died"))
	h.Drop(found.ID, errors.New("the engine died"))
	w.hasOnly(0)
	w.logged("the engine died", 1)
	if c := w.Counts()[0]; c.Refused != 1 {
		t.Errorf("%+v", c)
	}
}
