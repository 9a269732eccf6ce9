package catalog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImport(t *testing.T) {
	t.Parallel()
	first, second := shard(1, 2, map[string]int{"a": 256}), shard(2, 2, map[string]int{"b": 640, "c": 32})
	for name, tt := range map[string]struct {
		from, to     tree
		request      Import // Source is below the folder that it comes from
		source, home []string
		key          string
		reason       string
	}{
		"a move": {
			from: tree{files: files{"x.gguf": f32}}, request: Import{"x.gguf", "", "Pub", "Repo-GGUF", Move},
			source: []string{}, home: []string{"Pub/Repo-GGUF/x.gguf"}, key: "pub/repo",
		},
		"a copy": {
			from: tree{files: files{"x.gguf": f32}}, request: Import{"x.gguf", "", "Pub", "Repo", Copy},
			source: []string{"x.gguf"}, home: []string{"Pub/Repo/x.gguf"}, key: "pub/repo",
		},
		"a hard link": {
			from: tree{files: files{"x.gguf": f32}}, request: Import{"x.gguf", "", "Pub", "Repo", HardLink},
			source: []string{"x.gguf"}, home: []string{"Pub/Repo/x.gguf"}, key: "pub/repo",
		},
		"a symbolic link": {
			from: tree{files: files{"x.gguf": f32}}, request: Import{"x.gguf", "", "Pub", "Repo", SymLink},
			source: []string{"x.gguf"}, home: []string{"Pub/Repo/x.gguf ->"}, key: "pub/repo",
		},
		"without names": {
			from: tree{files: files{"tiny-f32.gguf": f32}}, request: Import{Source: "tiny-f32.gguf", How: Move},
			source: []string{}, home: []string{"local/tiny/tiny-f32.gguf"}, key: "local/tiny",
		},
		"all parts": {
			from:    tree{files: files{"s-00001-of-00002.gguf": first, "s-00002-of-00002.gguf": second}},
			request: Import{"s-00001-of-00002.gguf", "", "p", "m", Move},
			source:  []string{}, home: []string{"p/m/s-00001-of-00002.gguf", "p/m/s-00002-of-00002.gguf"}, key: "p/m",
		},
		"beside another": {
			from: tree{files: files{"x.gguf": f32}}, to: tree{files: files{"p/m/y.gguf": f16}}, request: Import{"x.gguf", "", "p", "m", Copy},
			source: []string{"x.gguf"}, home: []string{"p/m/x.gguf", "p/m/y.gguf"}, key: "p/m@f32",
		},
		"a projector": {
			from: tree{files: files{"mmproj.gguf": seesFile}}, to: tree{files: files{"p/m/y.gguf": f16}}, request: Import{"mmproj.gguf", "", "p", "m", Copy},
			source: []string{"mmproj.gguf"}, home: []string{"p/m/mmproj.gguf", "p/m/y.gguf"}, key: "p/m",
		},
		"of a link, a copy": {
			from:    tree{files{"blob": f32}, map[string]string{"x.gguf": "blob"}},
			request: Import{"x.gguf", "", "p", "m", Copy}, source: []string{"blob", "x.gguf ->"}, home: []string{"p/m/x.gguf"}, key: "p/m",
		},
		"of a link, a hard link": {
			from:    tree{files{"blob": f32}, map[string]string{"x.gguf": "blob"}},
			request: Import{"x.gguf", "", "p", "m", HardLink}, source: []string{"blob", "x.gguf ->"}, home: []string{"p/m/x.gguf"}, key: "p/m",
		},
		"of a link, no move": {
			from: tree{files{"blob": f32}, map[string]string{"x.gguf": "blob"}}, request: Import{"x.gguf", "", "p", "m", Move},
			source: []string{"blob", "x.gguf ->"}, home: []string{},
			reason: "FROM/x.gguf can't be imported: FROM/x.gguf is a link, and what it points to belongs elsewhere; copy or link it instead of moving it.",
		},
		"never over another": {
			from: tree{files: files{"x.gguf": f32}}, to: tree{files: files{"p/m/x.gguf": f16}}, request: Import{"x.gguf", "", "p", "m", Move},
			source: []string{"x.gguf"}, home: []string{"p/m/x.gguf"},
			reason: "FROM/x.gguf can't be imported: HOME/p/m/x.gguf already exists; remove it first, or choose another publisher or name.",
		},
		"never over another's second part": {
			from:    tree{files: files{"s-00001-of-00002.gguf": first, "s-00002-of-00002.gguf": second}},
			to:      tree{files: files{"p/m/s-00002-of-00002.gguf": nil}},
			request: Import{"s-00001-of-00002.gguf", "", "p", "m", Move},
			source:  []string{"s-00001-of-00002.gguf", "s-00002-of-00002.gguf"}, home: []string{"p/m/s-00002-of-00002.gguf"},
			reason: "FROM/s-00001-of-00002.gguf can't be imported: HOME/p/m/s-00002-of-00002.gguf already exists; remove it first, or choose another publisher or name.",
		},
		"a broken file": {
			from: tree{files: files{"x.gguf": []byte("text")}}, request: Import{"x.gguf", "", "p", "m", Move}, source: []string{"x.gguf"}, home: []string{},
			reason: "FROM/x.gguf can't be imported: it is not a GGUF file.",
		},
		"an adapter": {
			from: tree{files: files{"x.gguf": loraFile}}, request: Import{"x.gguf", "", "p", "m", Move}, source: []string{"x.gguf"}, home: []string{},
			reason: "FROM/x.gguf can't be imported: it is neither a model, nor a projector or a drafter of one.",
		},
		"another file": {
			from: tree{files: files{"x.bin": f32}}, request: Import{"x.bin", "", "p", "m", Move}, source: []string{"x.bin"}, home: []string{},
			reason: "FROM/x.bin can't be imported: it is not a GGUF file: its name has to end in .gguf.",
		},
		"a second part": {
			from:    tree{files: files{"s-00002-of-00002.gguf": second}},
			request: Import{"s-00002-of-00002.gguf", "", "p", "m", Move}, source: []string{"s-00002-of-00002.gguf"}, home: []string{},
			reason: "FROM/s-00002-of-00002.gguf can't be imported: it is a part of a split model; import the first part, and the others come along.",
		},
		"a part before the first": {
			from:    tree{files: files{"s-00000-of-00002.gguf": f32}},
			request: Import{"s-00000-of-00002.gguf", "", "p", "m", Move}, source: []string{"s-00000-of-00002.gguf"}, home: []string{},
			reason: "FROM/s-00000-of-00002.gguf can't be imported: it is a part of a split model; import the first part, and the others come along.",
		},
		"a name that leads out": {
			from: tree{files: files{"x.gguf": f32}}, request: Import{"x.gguf", "", "..", "m", Move}, source: []string{"x.gguf"}, home: []string{},
			reason: `FROM/x.gguf can't be imported: ".." can't be a folder's name, which has letters, digits, and . _ - between them: choose another, as in --repo name/m.`,
		},
		"no way": {
			from: tree{files: files{"x.gguf": f32}}, request: Import{"x.gguf", "", "p", "m", "steal"}, source: []string{"x.gguf"}, home: []string{},
			reason: `FROM/x.gguf can't be imported: "steal" is not a way to import: use move, copy, hardlink or symlink.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := t.TempDir()
			c, home := catalogOf(t, nil)
			tt.from.plant(t, from)
			tt.to.plant(t, home)
			tt.request.Source, tt.request.Models = filepath.Join(from, tt.request.Source), home
			models(t, c) // a scan that would answer for a second
			path, err := c.Import(t.Context(), tt.request)
			reason := ""
			if err != nil {
				reason = strings.NewReplacer(from, "FROM", home, "HOME").Replace(err.Error())
			}
			if reason != tt.reason {
				t.Errorf("error %q, want %q", reason, tt.reason)
			}
			if diff := cmp.Diff(tt.source, listed(t, from)); diff != "" {
				t.Errorf("where it was (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.home, listed(t, home)); diff != "" {
				t.Errorf("where it is (-want +got):\n%s", diff)
			}
			if tt.key == "" {
				return
			}
			if m, err := c.Lookup(t.Context(), tt.key); err != nil || m.Err != nil || m.Path != path && m.Projector != path {
				t.Errorf("%s is %q, and the file %s; %v, %v", tt.key, m.Path, path, err, m.Err)
			}
		})
	}
}

// TestImport_LeavesAllAsItWas on failure: the second part can't be read.
func TestImport_LeavesAllAsItWas(t *testing.T) {
	t.Parallel()
	for _, how := range []How{Move, Copy, HardLink, SymLink} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			from := t.TempDir()
			c, home := catalogOf(t, nil)
			write(t, from, "s-00001-of-00002.gguf", f32)
			write(t, from, "s-00002-of-00002.gguf", f32)
			request := Import{Models: home, How: how}
			paths := []string{filepath.Join(from, "s-00001-of-00002.gguf"), filepath.Join(from, "s-00002-of-00002.gguf")}
			dir := filepath.Join(home, "p", "m")
			write(t, home, "p/m/s-00002-of-00002.gguf", f16) // it has just come
			if err := request.bring(t.Context(), paths, dir); !errors.Is(err, os.ErrExist) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff([]string{"s-00001-of-00002.gguf", "s-00002-of-00002.gguf"}, listed(t, from)); diff != "" {
				t.Errorf("where they were (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"p/m/s-00002-of-00002.gguf"}, listed(t, home)); diff != "" {
				t.Errorf("where they should be (-want +got):\n%s", diff)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if err := request.bring(gone, paths[:1], filepath.Join(home, "q", "m")); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff([]string{"p/m/s-00002-of-00002.gguf"}, listed(t, home)); diff != "" {
				t.Errorf("after it was cancelled (-want +got):\n%s", diff)
			}
			_ = c
		})
	}
}

// TestImport_NeverLeadsOut: a publisher's folder may be a link to anywhere.
func TestImport_NeverLeadsOut(t *testing.T) {
	t.Parallel()
	from, elsewhere := t.TempDir(), t.TempDir()
	c, home := catalogOf(t, nil)
	source := write(t, from, "x.gguf", f32)
	link(t, home, "p", elsewhere)
	if _, err := c.Import(t.Context(), Import{source, home, "p", "m", Copy}); err == nil {
		t.Error("no error")
	}
	if all := listed(t, elsewhere); len(all) > 0 {
		t.Errorf("it has %q", all)
	}
}

// TestBeside: a projector is imported into the folder of the model that its name belongs to.
func TestBeside(t *testing.T) {
	t.Parallel()
	c, root := catalogOf(t, files{"Pub/Sees-GGUF/sees-f16.gguf": f16, "p/other/other-f16.gguf": f16, "q/twice/twice.gguf": f16, "r/twice/twice.gguf": f32})
	from := t.TempDir()
	for name, tt := range map[string]struct {
		file, repo, want string
		refused          bool
	}{
		"by its name":       {"mmproj-sees-f16.gguf", "", "Pub/Sees-GGUF", false},
		"of nobody":         {"mmproj-nobody-f16.gguf", "", "", true},
		"without a name":    {"mmproj.gguf", "", "", true},
		"of two":            {"mmproj-twice.gguf", "", "", true},
		"to a folder given": {"mmproj.gguf", "chosen", "/chosen", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := write(t, from, strings.ReplaceAll(name, " ", "-")+"/"+tt.file, seesFile)
			got, err := c.Beside(t.Context(), Import{Source: source, Models: root, Repo: tt.repo})
			if tt.refused {
				if err == nil || !strings.Contains(err.Error(), "--repo publisher/name") {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			if err != nil || got.Publisher+"/"+got.Repo != tt.want {
				t.Errorf("%s/%s, %v, want %s", got.Publisher, got.Repo, err, tt.want)
			}
		})
	}
	source := write(t, from, "a/model.gguf", f32)
	if got, err := c.Beside(t.Context(), Import{Source: source, Models: root}); err != nil || got.Repo != "" {
		t.Errorf("of a model: %v, %v", got, err)
	}
}
