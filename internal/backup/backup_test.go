package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

type files map[string]string

// newHome makes a home with files.
func newHome(t *testing.T, with files) home.Dir {
	t.Helper()
	dir := home.Dir(filepath.Join(t.TempDir(), "a home [1]")) // no pattern matches a path with brackets
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	for name, text := range with {
		put(t, filepath.Join(string(dir), filepath.FromSlash(name)), text)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// contents returns the files of a home.
func contents(t *testing.T, dir home.Dir) files {
	t.Helper()
	all := files{}
	err := filepath.WalkDir(string(dir), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(string(dir), path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		all[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func archived(t *testing.T, dir home.Dir, models bool) []byte {
	t.Helper()
	var b bytes.Buffer
	o := Options{Header: Header{Version: "v1", Created: time.Unix(1e9, 0).UTC(), Models: models}}
	if _, err := os.Stat(dir.Database()); err == nil {
		o.Database, o.Header.Schema = dir.Database(), 3
	}
	if _, err := Write(t.Context(), dir, o, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// replacing replaces what is there.
var replacing = How{Check: func(context.Context, string) error { return nil }, Replaces: true}

// full is a home with everything, and what a backup of it restores.
var full = files{
	"lmcaddy.db": "conversations", "lmcaddy.db-wal": "log", "mcp.json": "{}", "names.json": "{}", "Caddyfile": "lm", "environment": "HF_TOKEN=x", "catalog.json": "cache",
	"caddy/certificates/local/a/a.key": "secret", "caddy/locks/l": "lock", "caddy/autosave.json": "{}", "run/lock": "1", "warm/key": "k",
	"runtimes/selected": "llama.cpp-b1-cpu\n", "runtimes/llama.cpp-b1-cpu/bin/llama-server": "engine",
	"models/p/m/a.gguf": "weights", "models/p/m/b.gguf.part": "half", "models/.hidden/c.gguf": "x",
}

var kept = files{
	"lmcaddy.db": "conversations", "mcp.json": "{}", "names.json": "{}", "Caddyfile": "lm", "environment": "HF_TOKEN=x", "caddy/certificates/local/a/a.key": "secret",
	"caddy/autosave.json": "{}",
}

func TestRestore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from, to files
		models   bool
		want     files
		engines  []string
	}{
		"into nothing": {from: full, want: kept, engines: []string{"llama.cpp-b1-cpu"}},
		"with models":  {from: full, models: true, want: merged(kept, files{"models/p/m/a.gguf": "weights"}), engines: []string{"llama.cpp-b1-cpu"}},
		"over another": {
			from: full,
			to: files{
				"lmcaddy.db": "other", "lmcaddy.db-wal": "other", "lmcaddy.db-shm": "other", "caddy/old": "other", "warm/key": "other", "mcp.json": "other",
				"models/q/n/z.gguf": "stays", "runtimes/llama.cpp-b1-cpu/x": "stays", "runtimes/selected": "other",
			},
			want: merged(kept, files{
				"models/q/n/z.gguf": "stays", "runtimes/llama.cpp-b1-cpu/x": "stays", "runtimes/selected": "llama.cpp-b1-cpu\n",
			}),
			engines: []string{"llama.cpp-b1-cpu"},
		},
		"of little": {
			from: files{"mcp.json": "{}"}, to: files{"lmcaddy.db": "other", "Caddyfile": "other", "runtimes/selected": "stays"},
			want: files{"mcp.json": "{}", "runtimes/selected": "stays"}, engines: []string{},
		},
		"a model that is there": {
			from: files{"models/p/m/a.gguf": "weights"}, to: files{"models/p/m/a.gguf": "older", "models/p/m/b.gguf": "stays"}, models: true,
			want: files{"models/p/m/a.gguf": "weights", "models/p/m/b.gguf": "stays"}, engines: []string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive := archived(t, newHome(t, tt.from), tt.models)
			dir := newHome(t, tt.to)
			r, err := Restore(t.Context(), dir, bytes.NewReader(archive), replacing)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, contents(t, dir)); diff != "" {
				t.Errorf("the home (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.engines, r.Engines); diff != "" {
				t.Errorf("the engines (-want +got):\n%s", diff)
			}
		})
	}
}

func merged(trees ...files) files {
	all := files{}
	for _, m := range trees {
		maps.Copy(all, m)
	}
	return all
}

func TestWrite_FollowsLinks(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	put(t, filepath.Join(elsewhere, "m", "a.gguf"), "weights")
	put(t, filepath.Join(elsewhere, "b.gguf"), "more")
	dir := newHome(t, files{"models/p/here": ""})
	for to, from := range map[string]string{"p/m": elsewhere + "/m", "p/b.gguf": elsewhere + "/b.gguf", "loop": dir.Models()} {
		if err := os.Symlink(filepath.FromSlash(from), filepath.Join(dir.Models(), filepath.FromSlash(to))); err != nil {
			t.Fatal(err)
		}
	}
	other := newHome(t, nil)
	if _, err := Restore(t.Context(), other, bytes.NewReader(archived(t, dir, true)), replacing); err != nil {
		t.Fatal(err)
	}
	want := files{"models/p/m/a.gguf": "weights", "models/p/b.gguf": "more", "models/p/here": ""}
	if diff := cmp.Diff(want, contents(t, other)); diff != "" {
		t.Errorf("the home (-want +got):\n%s", diff)
	}
}

// TestRestore_Damaged cuts an archive off at many places, and changes a byte at many: the home stays as it was.
func TestRestore_Damaged(t *testing.T) {
	t.Parallel()
	archive := archived(t, newHome(t, full), true)
	there := files{"lmcaddy.db": "mine", "models/q/n/z.gguf": "mine"}
	dir := newHome(t, there)
	refused := func(t *testing.T, archive []byte, what string, at int) {
		t.Helper()
		_, err := Restore(t.Context(), dir, bytes.NewReader(archive), replacing)
		if err == nil {
			t.Fatalf("%s at %d was restored", what, at)
		}
		if !errors.As(err, new(*DamagedError)) && !errors.As(err, new(*NewerError)) {
			t.Errorf("%s at %d: %v", what, at, err)
		}
		if diff := cmp.Diff(there, contents(t, dir)); diff != "" {
			t.Fatalf("%s at %d changed the home (-want +got):\n%s", what, at, diff)
		}
	}
	for at := 0; at < len(archive)-1; at += max(1, len(archive)/15) {
		refused(t, archive[:at], "a cut", at)
		flipped := bytes.Clone(archive)
		flipped[at] ^= 0x10
		if bytes.Equal(unpacked(flipped), unpacked(archive)) {
			continue // a bit that means nothing
		}
		refused(t, flipped, "a change", at)
	}
}

func unpacked(archive []byte) []byte {
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil
	}
	defer d.Close()
	text, err := d.DecodeAll(archive, nil)
	if err != nil {
		return nil
	}
	return text
}

// made packs entries that no backup has.
func made(t *testing.T, header Header, said []Sum, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{ctx: t.Context(), tar: tar.NewWriter(z)}
	if err := w.json(headerName, header); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := w.tar.WriteHeader(&e); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.json(sumsName, sums{said}), w.tar.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRestore_Hostile(t *testing.T) {
	t.Parallel()
	for name, entry := range map[string]tar.Header{
		"out of the home":       {Typeflag: tar.TypeReg, Name: "home/../evil"},
		"out of a folder":       {Typeflag: tar.TypeReg, Name: "home/caddy/../../evil"},
		"an absolute path":      {Typeflag: tar.TypeReg, Name: "home//etc/passwd"},
		"elsewhere":             {Typeflag: tar.TypeReg, Name: "etc/passwd"},
		"an engine":             {Typeflag: tar.TypeReg, Name: "home/runtimes/llama.cpp-b1-cpu/bin/llama-server"},
		"a link":                {Typeflag: tar.TypeSymlink, Name: "home/mcp.json", Linkname: "/etc/passwd"},
		"the socket":            {Typeflag: tar.TypeReg, Name: "home/run/lmcaddy.sock"},
		"its own plan":          {Typeflag: tar.TypeReg, Name: "home/.restoring/plan.json"},
		"a name for a terminal": {Typeflag: tar.TypeReg, Name: "home/models/\x1b[2J/a.gguf"},
		"a path of Windows":     {Typeflag: tar.TypeReg, Name: `home/models/..\..\evil`},
		"a file for a folder":   {Typeflag: tar.TypeReg, Name: "home/caddy"},
		"a hard link":           {Typeflag: tar.TypeLink, Name: "home/mcp.json", Linkname: "/etc/passwd"},
		"a device":              {Typeflag: tar.TypeChar, Name: "home/mcp.json", Devmajor: 1, Devminor: 3},
		"a pipe":                {Typeflag: tar.TypeFifo, Name: "home/mcp.json"},
		"a folder":              {Typeflag: tar.TypeDir, Name: "home/models/p/"},
		"another case":          {Typeflag: tar.TypeReg, Name: "home/LMCADDY.db"},
		"a journal":             {Typeflag: tar.TypeReg, Name: "home/lmcaddy.db-wal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newHome(t, nil)
			if _, err := Restore(t.Context(), dir, bytes.NewReader(made(t, Header{Format: 1}, []Sum{{Path: "mcp.json"}}, entry)), replacing); !errors.As(err, new(*DamagedError)) {
				t.Errorf("error %v", err)
			}
			if got := contents(t, dir); len(got) > 0 {
				t.Errorf("there are files: %q", got)
			}
		})
	}
}

// TestRestore_HostileTexts has texts for a terminal where errors could quote them, numbers that are wrong, and files that can't be
// together.
func TestRestore_HostileTexts(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: "home/" + name} }
	const evil = "\x1b[2J"
	for name, archive := range map[string][]byte{
		"a version":            made(t, Header{Format: 2, Version: evil}, nil),
		"no format":            made(t, Header{}, nil),
		"a negative format":    made(t, Header{Format: -1}, nil),
		"a checksum's path":    made(t, Header{Format: 1}, []Sum{{Path: evil}}, file("mcp.json")),
		"twice the same":       made(t, Header{Format: 1}, []Sum{{Path: "mcp.json"}}, file("mcp.json"), file("mcp.json")),
		"a file and a folder":  made(t, Header{Format: 1}, []Sum{{Path: "models/a"}}, file("models/a"), file("models/a/b")),
		"a folder and a file":  made(t, Header{Format: 1}, []Sum{{Path: "models/a"}}, file("models/a/b"), file("models/a")),
		"no files":             made(t, Header{Format: 1}, nil),
		"nothing":              nil,
		"no archive":           []byte("<html>"),
		"another compression":  {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3},
		"something at the end": append(made(t, Header{Format: 1}, nil), packed(t, make([]byte, 2*maxTrailer))...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newHome(t, nil)
			_, err := Restore(t.Context(), dir, bytes.NewReader(archive), replacing)
			if !errors.As(err, new(*DamagedError)) && !errors.As(err, new(*NewerError)) || strings.Contains(err.Error(), evil) {
				t.Errorf("error %q", err)
			}
			if got := contents(t, dir); len(got) > 0 {
				t.Errorf("there are files: %q", got)
			}
		})
	}
}

func packed(t *testing.T, text []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return z.EncodeAll(text, nil)
}

// TestRestore_LargerThanTheDisk is told of a file that no disk has room for, before anything of it is written.
func TestRestore_LargerThanTheDisk(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := &writer{ctx: t.Context(), tar: tar.NewWriter(&b)}
	if err := w.json(headerName, Header{Format: 1}); err != nil {
		t.Fatal(err)
	}
	if err := w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "home/models/a.gguf", Size: 1 << 60}); err != nil {
		t.Fatal(err)
	}
	dir := newHome(t, nil)
	if _, err := Restore(t.Context(), dir, bytes.NewReader(packed(t, b.Bytes())), replacing); err == nil || !strings.Contains(err.Error(), "too little room") {
		t.Errorf("error %v", err)
	}
	if got := contents(t, dir); len(got) > 0 {
		t.Errorf("there are files: %q", got)
	}
}

func TestRestore_HostileEngine(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../../bin", "\x1b[2J", "", "a\nb", "/bin", strings.Repeat("x", 200)} {
		archive := archived(t, newHome(t, files{"runtimes/selected": name}), false)
		dir := newHome(t, nil)
		if _, err := Restore(t.Context(), dir, bytes.NewReader(archive), replacing); !errors.As(err, new(*DamagedError)) || len(contents(t, dir)) > 0 {
			t.Errorf("%q: error %v", name, err)
		}
	}
}

// TestWrite_LeftOut tells of models whose names not every system allows, and of links that lead nowhere.
func TestWrite_LeftOut(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // there are no such files
	}
	dir := newHome(t, files{"models/p/m/a:b.gguf": "x", "models/p/m/c.gguf": "x", "models/p/m/d.gguf.part": "x"})
	want := []string{filepath.Join(dir.Models(), "p", "m", "a:b.gguf")}
	for name, to := range map[string]string{"nowhere.gguf": "nowhere", "self.gguf": "self.gguf"} {
		link := filepath.Join(dir.Models(), "p", "m", name)
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		want = append(want, link)
	}
	w, err := Write(t.Context(), dir, Options{Header: Header{Models: true}}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, w.LeftOut); diff != "" || len(w.Files) != 1 {
		t.Errorf("%v\n%s", w.Files, diff)
	}
}

func TestIsOwn(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"mcp.json": true, "lmcaddy.db-wal": true, "LMCADDY.DB": true, "models/x": true, "run/x": true, ".restoring/x": true, "caddy/x": true,
		"backup.tar.zst": false, "backups/x": false, "mcp.json.bak": false,
	} {
		if got := IsOwn(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRestore_Checksums(t *testing.T) {
	t.Parallel()
	entry := tar.Header{Typeflag: tar.TypeReg, Name: "home/mcp.json"}
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for name, tt := range map[string]struct {
		said []Sum
		ok   bool
	}{
		"right":         {[]Sum{{"mcp.json", 0, empty}}, true},
		"other content": {[]Sum{{"mcp.json", 0, strings.Replace(empty, "e", "f", 1)}}, false},
		"another size":  {[]Sum{{"mcp.json", 1, empty}}, false},
		"another file":  {[]Sum{{"Caddyfile", 0, empty}}, false},
		"more files":    {[]Sum{{"mcp.json", 0, empty}, {"Caddyfile", 0, empty}}, false},
		"none":          {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newHome(t, nil)
			_, err := Restore(t.Context(), dir, bytes.NewReader(made(t, Header{Format: 1}, tt.said, entry)), replacing)
			if (err == nil) != tt.ok || len(contents(t, dir)) > 0 != tt.ok {
				t.Errorf("error %v, files %q", err, contents(t, dir))
			}
		})
	}
}

func TestRestore_Newer(t *testing.T) {
	t.Parallel()
	_, err := Restore(t.Context(), newHome(t, nil), bytes.NewReader(made(t, Header{Format: 2, Version: "v9"}, nil)), replacing)
	if !errors.As(err, new(*NewerError)) || !strings.Contains(err.Error(), "v9") {
		t.Errorf("error %v", err)
	}
	dir := newHome(t, files{"mcp.json": "mine"})
	refusal := errors.New("a newer database")
	_, err = Restore(t.Context(), dir, bytes.NewReader(archived(t, newHome(t, full), false)), How{Check: func(context.Context, string) error { return refusal }})
	if !errors.Is(err, refusal) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(files{"mcp.json": "mine"}, contents(t, dir)); diff != "" {
		t.Errorf("the home (-want +got):\n%s", diff)
	}
}

// TestRestore_OtherModels keeps a model's file that isn't the backup's, unless it may be replaced.
func TestRestore_OtherModels(t *testing.T) {
	t.Parallel()
	archive := archived(t, newHome(t, files{"models/p/m/a.gguf": "of the backup"}), true)
	how := replacing
	how.Replaces = false
	for text, want := range map[string]string{"mine": "mine", "of the backup": ""} {
		dir := newHome(t, files{"models/p/m/a.gguf": text})
		_, err := Restore(t.Context(), dir, bytes.NewReader(archive), how)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s: error %v", text, err)
		}
		if diff := cmp.Diff(files{"models/p/m/a.gguf": text}, contents(t, dir)); diff != "" {
			t.Errorf("the home (-want +got):\n%s", diff)
		}
	}
}

func TestRestore_NeverThroughALink(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	put(t, filepath.Join(elsewhere, "a.gguf"), "of somebody else")
	dir := newHome(t, files{"mcp.json": "mine"})
	if err := os.MkdirAll(filepath.Join(dir.Models(), "p"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir.Models(), "p", "m")); err != nil {
		t.Fatal(err)
	}
	_, err := Restore(t.Context(), dir, bytes.NewReader(archived(t, newHome(t, full), true)), replacing)
	if err == nil || !strings.Contains(err.Error(), "in the way") {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(elsewhere, "a.gguf")); err != nil || string(text) != "of somebody else" {
		t.Errorf("%q, error %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(string(dir), "mcp.json")); err != nil || string(text) != "mine" {
		t.Errorf("%q, error %v", text, err)
	}
}

// TestFinish ends a restore after each of its steps, as a crash would: before the plan is written, the home is the old one, and
// after that, Finish makes it the new one.
func TestFinish(t *testing.T) {
	t.Parallel()
	archive := archived(t, newHome(t, full), true)
	there := files{
		"lmcaddy.db": "other", "lmcaddy.db-wal": "other", "warm/key": "other", "mcp.json": "other", "caddy/certificates/local/a/a.key": "other",
		"models/q/n/z.gguf": "stays", "models/p/m/a.gguf": "older", "environment": "other",
	}
	want := merged(kept, files{"models/q/n/z.gguf": "stays", "models/p/m/a.gguf": "weights"})
	begun := func(t *testing.T) (home.Dir, []string) {
		t.Helper()
		dir := newHome(t, there)
		a, err := open(t.Context(), bytes.NewReader(archive))
		if err != nil {
			t.Fatal(err)
		}
		defer a.close()
		names, err := stage(a, dir)
		if err != nil {
			t.Fatal(err)
		}
		return dir, names
	}
	t.Run("before the plan", func(t *testing.T) {
		t.Parallel()
		dir, _ := begun(t)
		put(t, filepath.Join(dir.Run(), WorkPrefix+"1", "lmcaddy.db"), "a copy of a backup that was killed")
		if err := Finish(dir); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(there, contents(t, dir)); diff != "" {
			t.Errorf("the home (-want +got):\n%s", diff)
		}
	})
	for done, isLast := 0, false; !isLast; done++ {
		dir, names := begun(t)
		if err := commit(dir, names); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(string(dir), planned))
		if err != nil {
			t.Fatal(err)
		}
		var p plan
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		steps := p.steps(dir)
		isLast = done == len(steps)
		for _, step := range steps[:done] {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		if err := Finish(dir); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
			t.Fatalf("after %d of %d steps, the home (-want +got):\n%s", done, len(steps), diff)
		}
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	if there := Holds(newHome(t, files{"models/p/m/a.gguf": "x", "run/lock": "", "runtimes/selected": "x"})); len(there) > 0 {
		t.Errorf("a home without state holds %q", there)
	}
	if there := Holds(newHome(t, full)); !slices.Equal(there, replaced) {
		t.Errorf("it holds %q", there)
	}
}
