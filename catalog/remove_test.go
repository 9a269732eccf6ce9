package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listed returns all files, links and empty folders below a root. Links have an arrow.
func listed(t *testing.T, root string) []string {
	t.Helper()
	all := []string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch entries, _ := os.ReadDir(path); {
		case e.Type()&fs.ModeSymlink != 0:
			all = append(all, filepath.ToSlash(rel)+" ->")
		case !e.IsDir():
			all = append(all, filepath.ToSlash(rel))
		case len(entries) == 0 && path != root:
			all = append(all, filepath.ToSlash(rel)+"/")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRemove(t *testing.T) {
	t.Parallel()
	const reason = "The model p/m can't be removed: "
	for name, tt := range map[string]struct {
		tree   tree
		key    string
		want   []string
		reason string
	}{
		"a file and its folders": {tree{files: files{"p/m/m.gguf": f32}}, "p/m", []string{}, ""},
		"beside another": {
			tree{files: files{"p/m/m.gguf": f32, "p/other/m.gguf": f32}}, "p/m", []string{"p/other/m.gguf"}, "",
		},
		"beside what is none": {tree{files: files{"p/m/m.gguf": f32, "p/m/README.md": nil}}, "p/m", []string{"p/m/README.md"}, ""},
		"all parts": {
			tree{files: files{
				"p/m/s-00001-of-00002.gguf": shard(1, 2, map[string]int{"a": 256}),
				"p/m/s-00002-of-00002.gguf": shard(2, 2, map[string]int{"b": 640, "c": 32}),
				"p/m/t-00002-of-00002.gguf": nil,
			}}, "p/m", []string{"p/m/t-00002-of-00002.gguf"}, "",
		},
		"a broken one, some of whose parts are missing": {
			tree{files: files{
				"p/m/s-00001-of-00003.gguf": shard(1, 3, map[string]int{"a": 256}),
				"p/m/s-00003-of-00003.gguf": shard(3, 3, map[string]int{"b": 640, "c": 32}),
			}}, "p/m", []string{}, "",
		},
		"with its projector": {tree{files: files{"p/m/m.gguf": f32, "p/m/mmproj-f16.gguf": seesFile}}, "p/m", []string{}, ""},
		"without a projector that another has": {
			tree{files: files{"p/m/m-f32.gguf": f32, "p/m/m-f16.gguf": f16, "p/m/mmproj.gguf": seesFile}},
			"p/m@f32",
			[]string{"p/m/m-f16.gguf", "p/m/mmproj.gguf"},
			"",
		},
		"with its own projector": {
			tree{files: files{
				"p/m/a-f32.gguf": f32, "p/m/b-f16.gguf": f16, "p/m/mmproj-a-f16.gguf": seesFile, "p/m/mmproj-b-f16.gguf": seesFile,
			}},
			"p/m@f32",
			[]string{"p/m/b-f16.gguf", "p/m/mmproj-b-f16.gguf"},
			"",
		},
		"in the folder of a quantization": {
			tree{files: files{"p/m/Q4_K_M/m-Q4_K_M.gguf": f32, "p/m/mmproj.gguf": seesFile}}, "p/m", []string{}, "",
		},
		"an MLX model": {
			tree{files: files{"p/m/config.json": mlxModel(nil)["config.json"], "p/m/model.safetensors": mlxModel(nil)["model.safetensors"], "p/m/tokenizer.json": nil}},
			"p/m",
			[]string{},
			"",
		},
		"a link": {
			tree{files{"else/where.gguf": f32}, map[string]string{"p/m/m.gguf": "../../else/where.gguf"}}, "p/m", []string{"else/where.gguf"}, "",
		},
		"a folder that is a link": {
			tree{files{"else/where/x.gguf": f32}, map[string]string{"p/m": "../else/where"}}, "p/m", []string{"else/where/x.gguf"}, "",
		},
		"a folder that is a link to several": {
			tree{files{"else/where/x.gguf": f32, "else/where/y.gguf": f16}, map[string]string{"p/m": "../else/where"}},
			"p/m@f32",
			[]string{"else/where/x.gguf", "else/where/y.gguf", "p/m ->"},
			"The model p/m@f32 can't be removed: its folder ROOT/p/m is a link, and p/m@f16 exists, too; remove the link by hand if you want neither.",
		},
		"of the hub's cache": {
			tree{files: files{"models--p--m/snapshots/1/m.gguf": f32}},
			"p/m",
			[]string{"models--p--m/snapshots/1/m.gguf"},
			reason + "ROOT/models--p--m/snapshots/1/m.gguf is kept by another program; remove it with that program.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, root := catalogOf(t, nil)
			setFormats(c, FormatGGUF, FormatMLX)
			tt.tree.plant(t, root)
			m, err := c.Lookup(t.Context(), tt.key)
			if err != nil {
				t.Fatal(err)
			}
			before := listed(t, root)
			err = c.Remove(t.Context(), root, m)
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), root, "ROOT")
			}
			if got != tt.reason {
				t.Errorf("error %q, want %q", got, tt.reason)
			}
			if diff := cmp.Diff(tt.want, listed(t, root)); diff != "" {
				t.Errorf("what is left of %q (-want +got):\n%s", before, diff)
			}
			all := models(t, c)
			if i := slices.IndexFunc(all, func(o Model) bool { return o.Path == m.Path }); (i >= 0) != (tt.reason != "") {
				t.Errorf("listed afterwards: %v", i >= 0)
			}
		})
	}
}

// TestRemove_OnlyInItsOwnFolder: nothing in other roots or above is removed.
func TestRemove_OnlyInItsOwnFolder(t *testing.T) {
	t.Parallel()
	home, other := t.TempDir(), t.TempDir()
	write(t, other, "p/m/m.gguf", f32)
	elsewhere := write(t, t.TempDir(), "p/x.gguf", f32)
	c, _ := catalogOf(t, nil)
	c.SetRoots([]string{home, other})
	m, err := c.Lookup(t.Context(), "p/m")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{m.Path, elsewhere, filepath.Join(home, "..", filepath.Base(other), "p", "m", "m.gguf"), home, filepath.Dir(home)} {
		m.Path = path
		var refused *RemoveError
		if err := c.Remove(t.Context(), home, m); !errors.As(err, &refused) {
			t.Errorf("%s: error %v", path, err)
		}
	}
	if diff := cmp.Diff([]string{"p/m/m.gguf"}, listed(t, other)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
