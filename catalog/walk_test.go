package catalog

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// shard returns a part of a split model. The first has the model's metadata.
func shard(number, of int, tensors map[string]int) []byte {
	meta := map[string]any{"split.no": uint16(number - 1), "split.count": uint16(of), "split.tensors.count": uint16(3)}
	f := file{meta: meta, tensors: tensors}
	if number == 1 {
		f = llama("Split", meta)
		f.tensors = tensors
	}
	return f.bytes()
}

func TestSplitModels(t *testing.T) {
	t.Parallel()
	first, second := shard(1, 2, map[string]int{"a": 256}), shard(2, 2, map[string]int{"b": 640, "c": 32})
	c, root := catalogOf(t, files{
		"pub/split/s-00001-of-00002.gguf": first, "pub/split/s-00002-of-00002.gguf": second,
		"pub/two/f-00001-of-00002.gguf": first, "pub/two/f-00002-of-00002.gguf": second, "pub/two/whole.gguf": f16,
		"flat-f32-00001-of-00002.gguf": first, "flat-f32-00002-of-00002.gguf": second,
		"pub/rest/s-00002-of-00003.gguf":   second,
		"pub/lone/s-00001-of-00001.gguf":   shard(1, 1, map[string]int{"a": 256}),
		"pub/header/s-00001-of-00002.gguf": shard(1, 2, nil), "pub/header/s-00002-of-00002.gguf": second,
	})
	want := map[string]string{
		"pub/split": "pub/split/s-00001-of-00002.gguf", "pub/lone": "pub/lone/s-00001-of-00001.gguf", "pub/header": "pub/header/s-00001-of-00002.gguf",
		"pub/two@f16": "pub/two/whole.gguf", "pub/two@f32": "pub/two/f-00001-of-00002.gguf", "local/flat": "flat-f32-00001-of-00002.gguf",
	}
	if diff := cmp.Diff(want, paths(t, c, root)); diff != "" {
		t.Errorf("paths by key (-want +got):\n%s", diff)
	}
	m, err := c.Lookup(t.Context(), "split")
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(len(first) + len(second)); m.SizeBytes != want || m.Parameters != 928 || m.DisplayName != "Split" {
		t.Errorf("%d bytes, %d parameters, name %q; want %d, 928, Split", m.SizeBytes, m.Parameters, m.DisplayName, want)
	}
}

// TestSplitModels_BecomeWhole: a change of any part may repair or break a split model.
func TestSplitModels_BecomeWholeAndBreak(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, second := shard(1, 2, map[string]int{"a": 256}), shard(2, 2, map[string]int{"b": 640, "c": 32})
		c, root := catalogOf(t, files{"p/s/s-00001-of-00002.gguf": first})
		check := func(want string) {
			t.Helper()
			aMomentLater()
			got := ""
			if m, err := c.Lookup(t.Context(), "p/s"); err != nil {
				t.Error(err)
			} else if m.Err != nil {
				got = m.Err.Error()
			}
			if got != want {
				t.Errorf("reason %q, want %q", got, want)
			}
		}
		missing := "its part s-00002-of-00002.gguf is missing; fetch it again"
		check(missing)
		write(t, root, "p/s/s-00002-of-00002.gguf", second[:len(second)-1])
		check("it is truncated: it has " + strconv.Itoa(len(first)+len(second)-1) + " bytes, fewer than its header declares; fetch it again")
		write(t, root, "p/s/s-00002-of-00002.gguf", second)
		check("")
		if err := os.Remove(filepath.Join(root, "p", "s", "s-00002-of-00002.gguf")); err != nil {
			t.Fatal(err)
		}
		check("") // what is known to be good isn't looked for again by its name
		models(t, c)
		check(missing)
		write(t, root, "p/s/s-00002-of-00002.gguf", second)
		check("")
		if err := os.Truncate(filepath.Join(root, "p", "s", "s-00002-of-00002.gguf"), int64(len(second))-1); err != nil {
			t.Fatal(err)
		}
		aMomentLater()
		models(t, c)
		check("it is truncated: it has " + strconv.Itoa(len(first)+len(second)-1) + " bytes, fewer than its header declares; fetch it again")
	})
}

// TestWalk_OnlyModelsAreListed: projectors belong to the models of their folder. Adapters and the like are ignored.
func TestWalk_OnlyModelsAreListed(t *testing.T) {
	t.Parallel()
	projector := llama("Projector", map[string]any{"general.architecture": "clip", "clip.projector_type": "mlp", "clip.has_vision_encoder": true}).bytes()
	c, root := catalogOf(t, files{
		"p/sees/mmproj-f16.gguf": projector, "p/sees/a.gguf": f32, "p/sees/b.gguf": f16,
		"p/part/m-00000-of-00002.gguf": f32, "p/part/m-00002-of-00002.gguf": f32, // the first is missing
		"p/blind/a.gguf":    f32,
		"p/above/a.gguf":    f32,
		"p/above/in/m.gguf": projector,
		"p/only/m.gguf":     projector,
		"p/lora/l.gguf":     llama("LoRA", map[string]any{"general.type": "adapter", "adapter.type": "lora"}).bytes(),
		"p/hears/a.gguf":    f32,
		"p/hears/ears.gguf": llama("Ears", map[string]any{"general.architecture": "clip", "clip.projector_type": "ultravox", "clip.has_audio_encoder": true}).bytes(),
		"p/both/a.gguf":     f32,
		"p/both/mmproj.gguf": llama("Both", map[string]any{
			"general.architecture": "clip", "clip.vision.projector_type": "gemma4v", "clip.audio.projector_type": "gemma4a",
			"clip.has_vision_encoder": true, "clip.has_audio_encoder": true,
		}).bytes(),
		"p/picture/a.gguf": llama("Picture", map[string]any{"general.architecture": "flux"}).bytes(),
		"p/words/a.gguf":   file{meta: llama("Words", nil).meta}.bytes(),
		"p/other/a.gguf":   llama("Other", map[string]any{"general.type": "vocoder"}).bytes(),
		"p/matrix/i.gguf":  llama("Matrix", map[string]any{"general.type": "imatrix"}).bytes(),
	})
	want := map[string]string{"p/sees@f32": "p/sees/mmproj-f16.gguf", "p/sees@f16": "p/sees/mmproj-f16.gguf", "p/blind": "", "p/above": "", "p/hears": "p/hears/ears.gguf", "p/both": "p/both/mmproj.gguf"}
	got := map[string]string{}
	for _, m := range models(t, c) {
		if m.Vision != (strings.HasPrefix(m.Key, "p/sees") || m.Key == "p/both") {
			t.Errorf("%s: vision is %v", m.Key, m.Vision)
		}
		if m.Audio != (m.Key == "p/hears" || m.Key == "p/both") {
			t.Errorf("%s: audio is %v", m.Key, m.Audio)
		}
		got[m.Key] = filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(m.Projector, root), string(filepath.Separator)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("projectors by key (-want +got):\n%s", diff)
	}
}

// TestWalk_ProjectorsHaveNames that assign them to one of several models in a folder.
func TestWalk_ProjectorsHaveNames(t *testing.T) {
	t.Parallel()
	small := projectorFile(nil)
	small.tensors = nil
	large := projectorFile(nil).bytes()
	for name, tt := range map[string]struct {
		files files
		want  map[string]string
	}{
		"one flat model": {
			files{"gemma-Q4_0.gguf": f32, "mmproj-model-f16.gguf": large}, map[string]string{"local/gemma-q4_0": "mmproj-model-f16.gguf"},
		},
		"one flat model beside a broken one": {
			files{"gemma.gguf": f32, "half.gguf": f32[:500], "mmproj-f16.gguf": large},
			map[string]string{"local/gemma": "mmproj-f16.gguf", "local/half": "mmproj-f16.gguf"},
		},
		"flat models, and one without a name": {
			files{"f32.gguf": f32, "qwen.gguf": f16, "mmproj-f16.gguf": large}, map[string]string{"local/f32": "", "local/qwen": ""},
		},
		"flat models, and no name": {
			files{"gemma.gguf": f32, "qwen.gguf": f16, "mmproj-model-f16.gguf": large, "mmproj.gguf": large},
			map[string]string{"local/gemma": "", "local/qwen": ""},
		},
		"flat models": {
			files{
				"Gemma-3-4b-it-UD-Q4_K_XL.gguf": f32, "gemma-3-12b-it-Q4_K_M.gguf": f32, "Qwen2-VL.IQ4_XS.gguf": f16, "blind.gguf": f16,
				"mmproj-gemma-3-4b-it-f16.gguf": large, "gemma-3-12b-it-mmproj-BF16.gguf": large, "qwen2-vl-Q8_0.mmproj.gguf": large,
				"mmproj-other-f16.gguf": large,
			},
			map[string]string{
				"local/gemma-3-4b-it-ud-q4_k_xl": "mmproj-gemma-3-4b-it-f16.gguf", "local/gemma-3-12b-it-q4_k_m": "gemma-3-12b-it-mmproj-BF16.gguf",
				"local/qwen2-vl.iq4_xs": "qwen2-vl-Q8_0.mmproj.gguf", "local/blind": "",
			},
		},
		"flat quantizations of one": {
			files{"gemma-f32.gguf": f32, "gemma-f16.gguf": f16, "mmproj.gguf": large},
			map[string]string{"local/gemma@f32": "mmproj.gguf", "local/gemma@f16": "mmproj.gguf"},
		},
		"the smallest of several": {
			files{"p/m/m.gguf": f32, "p/m/mmproj-F32.gguf": large, "p/m/mmproj-F16.gguf": small.bytes(), "p/m/mmproj-BF16.gguf": large},
			map[string]string{"p/m": "p/m/mmproj-F16.gguf"},
		},
		"a repository's, by name and by none": {
			files{"p/m/m-4b.gguf": f32, "p/m/m-12b.gguf": f16, "p/m/mmproj-m-4b.gguf": small.bytes(), "p/m/mmproj.gguf": large},
			map[string]string{"p/m@f32": "p/m/mmproj-m-4b.gguf", "p/m@f16": "p/m/mmproj.gguf"},
		},
		"a repository's, of another name": {
			files{"p/m/m-f32.gguf": f32, "p/m/m-f16.gguf": f16, "p/m/mmproj-original-f16.gguf": large},
			map[string]string{"p/m@f32": "p/m/mmproj-original-f16.gguf", "p/m@f16": "p/m/mmproj-original-f16.gguf"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, root := catalogOf(t, tt.files)
			got := map[string]string{}
			for _, m := range models(t, c) {
				got[m.Key] = filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(m.Projector, root), string(filepath.Separator)))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("projectors by key (-want +got):\n%s", diff)
			}
		})
	}
}

// link creates a symbolic link below a root.
func link(t *testing.T, root, rel, target string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestWalk_FollowsLinks(t *testing.T) {
	t.Parallel()
	elsewhere := t.TempDir()
	write(t, elsewhere, "Some-GGUF/blob", f32)
	write(t, elsewhere, "Folder/model.gguf", f16)
	c, root := catalogOf(t, files{"p/real/a.gguf": f32})
	link(t, root, "p/file/link.gguf", filepath.Join(elsewhere, "Some-GGUF", "blob"))
	link(t, root, "p/folder", filepath.Join(elsewhere, "Folder"))
	link(t, root, "publisher", elsewhere)
	link(t, root, "p/twice", "real")
	link(t, root, "p/gone/a.gguf", filepath.Join(elsewhere, "nothing"))
	link(t, root, "p/nowhere", filepath.Join(elsewhere, "nothing"))
	want := map[string]string{
		"p/real": "p/real/a.gguf", "p/file": "p/file/link.gguf", "p/folder": "p/folder/model.gguf",
		"publisher/folder": "publisher/Folder/model.gguf", "p/twice": "p/twice/a.gguf",
		"p/gone": "p/gone/a.gguf?", // with the reason
	}
	if diff := cmp.Diff(want, paths(t, c, root)); diff != "" {
		t.Errorf("paths by key (-want +got):\n%s", diff)
	}
}

// TestWalk_EndsInLoops: folders that link to each other are walked once, and their models have one key.
func TestWalk_EndsInLoops(t *testing.T) {
	t.Parallel()
	c, root := catalogOf(t, files{"p/a/x.gguf": f32, "p/b/y.gguf": f32})
	for _, rel := range []string{"all", "p/up", "p/a/up", "p/b/up"} {
		link(t, root, rel, root)
	}
	link(t, root, "p/a/self", ".")
	link(t, root, "p/b/never", "never")
	if diff := cmp.Diff(map[string]string{"p/a": "p/a/x.gguf", "p/b": "p/b/y.gguf"}, paths(t, c, root)); diff != "" {
		t.Errorf("paths by key (-want +got):\n%s", diff)
	}
}

// TestWalk_EndsInMutualLinks: two folders contain links to each other.
func TestWalk_EndsInMutualLinks(t *testing.T) {
	t.Parallel()
	c, root := catalogOf(t, files{"p/a/x.gguf": f32, "p/b/y.gguf": f32})
	link(t, root, "p/a/to-b", filepath.Join(root, "p", "b"))
	link(t, root, "p/b/to-a", filepath.Join(root, "p", "a"))
	want := map[string]string{"p/a": "p/a/x.gguf", "p/b": "p/b/y.gguf", "a/to-b": "p/a/to-b/y.gguf", "b/to-a": "p/b/to-a/x.gguf"}
	if diff := cmp.Diff(want, paths(t, c, root)); diff != "" {
		t.Errorf("paths by key (-want +got):\n%s", diff)
	}
}

func TestWalk_HasADepth(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("d/", maxNesting-2)
	c, root := catalogOf(t, files{deep + "p/in/x.gguf": f32, deep + "p/in/out/x.gguf": f32})
	if diff := cmp.Diff(map[string]string{"p/in": deep + "p/in/x.gguf"}, paths(t, c, root)); diff != "" {
		t.Errorf("paths by key (-want +got):\n%s", diff)
	}
}
