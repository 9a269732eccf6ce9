package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files files
		want  map[string]string
	}{
		"publisher and repository": {
			files{"Qwen/Qwen3-4B/q.gguf": f32}, map[string]string{"qwen/qwen3-4b": "Qwen/Qwen3-4B/q.gguf"},
		},
		"-GGUF is dropped": {
			files{"p/A-GGUF/a.gguf": f32, "p/B-gguf/b.gguf": f32, "p/gguf/c.gguf": f32, "p/-gguf/d.gguf": f32, "p/D-GGUF-v2/e.gguf": f32},
			map[string]string{
				"p/a": "p/A-GGUF/a.gguf", "p/b": "p/B-gguf/b.gguf", "p/gguf": "p/gguf/c.gguf", "p/-gguf": "p/-gguf/d.gguf", "p/d-gguf-v2": "p/D-GGUF-v2/e.gguf",
			},
		},
		"-MLX is dropped": {files{"p/A-MLX/a.gguf": f32}, map[string]string{"p/a": "p/A-MLX/a.gguf"}},
		"only the last of them": {
			files{"p/A-MLX-GGUF/a.gguf": f32}, map[string]string{"p/a-mlx": "p/A-MLX-GGUF/a.gguf"},
		},
		"several quantizations": {
			files{"p/a/one.gguf": f32, "p/a/two.gguf": f16}, map[string]string{"p/a@f32": "p/a/one.gguf", "p/a@f16": "p/a/two.gguf"},
		},
		"several of one quantization": {
			files{"p/a/one.gguf": f32, "p/a/Two.gguf": f32, "p/a/three.gguf": f16},
			map[string]string{"p/a@one": "p/a/one.gguf", "p/a@two": "p/a/Two.gguf", "p/a@f16": "p/a/three.gguf"},
		},
		"one repository in two folders": {
			files{"p/a/x.gguf": f32, "p/a-GGUF/y.gguf": f16}, map[string]string{"p/a@f32": "p/a/x.gguf", "p/a@f16": "p/a-GGUF/y.gguf"},
		},
		"flat file": {
			files{"Tiny-F32.gguf": f32, "Other.f16.gguf": f16, "noquant.gguf": f32},
			map[string]string{"local/tiny": "Tiny-F32.gguf", "local/other": "Other.f16.gguf", "local/noquant": "noquant.gguf"},
		},
		"flat files of one model": {
			files{"tiny-f32.gguf": f32, "tiny-f16.gguf": f16}, map[string]string{"local/tiny@f32": "tiny-f32.gguf", "local/tiny@f16": "tiny-f16.gguf"},
		},
		"another quantization in a flat name": {
			files{"tiny-Q8_0.gguf": f32}, map[string]string{"local/tiny-q8_0": "tiny-Q8_0.gguf"},
		},
		"a flat name that only ends like one": {
			files{"modelf32.gguf": f32}, map[string]string{"local/modelf32": "modelf32.gguf"},
		},
		"nothing but the quantization in a flat name": {
			files{"f32.gguf": f32, "-f16.gguf": f16}, map[string]string{"local/f32": "f32.gguf", "local/-f16": "-f16.gguf"},
		},
		"one folder deep": {
			files{"Tiny-GGUF/model-f32.gguf": f32}, map[string]string{"local/tiny": "Tiny-GGUF/model-f32.gguf"},
		},
		"deeper": {
			files{"a/b/c/d/x.gguf": f32, "b/c/y.gguf": f32}, map[string]string{"c/d": "a/b/c/d/x.gguf", "b/c": "b/c/y.gguf"},
		},
		"signs that mean something": {
			files{"My Models/Big @ Model:v2,x/a.gguf": f32}, map[string]string{"my-models/big---model-v2-x": "My Models/Big @ Model:v2,x/a.gguf"},
		},
		"signs in a file name": {
			files{"p/a/x @1.gguf": f32, "p/a/y:2.gguf": f32}, map[string]string{"p/a@x--1": "p/a/x @1.gguf", "p/a@y-2": "p/a/y:2.gguf"},
		},
		"letters": {files{"Ünï/Größe/a.gguf": f32}, map[string]string{"ünï/größe": "Ünï/Größe/a.gguf"}},
		"the file's ending": {
			files{"p/a/A.GGUF": f32, "p/b/b.gguf.part": f32, "p/c/c.bin": f32, "p/d/gguf": f32}, map[string]string{"p/a": "p/a/A.GGUF"},
		},
		"hidden": {
			files{"p/a/.a.gguf": f32, ".cache/b/b.gguf": f32, "p/.b/b.gguf": f32}, map[string]string{},
		},
		"a broken one beside a good one": {
			files{"p/a/good.gguf": f32, "p/a/broken.gguf": []byte("GGUF")}, map[string]string{"p/a": "p/a/good.gguf", "p/a@broken": "p/a/broken.gguf?"},
		},
		"a broken one beside good ones": {
			files{"p/a/one.gguf": f32, "p/a/two.gguf": f16, "p/a/f32.gguf": nil},
			map[string]string{"p/a@f32": "p/a/one.gguf", "p/a@f16": "p/a/two.gguf"}, // the broken one's key is taken
		},
		"a broken one of a quantization that is there": {
			files{"p/a/one.gguf": f32, "p/a/two.gguf": f16, "p/a/three-f32.gguf": nil},
			map[string]string{"p/a@f32": "p/a/one.gguf", "p/a@f16": "p/a/two.gguf", "p/a@three-f32": "p/a/three-f32.gguf?"},
		},
		"a broken one alone": {files{"p/a/x.gguf": nil}, map[string]string{"p/a": "p/a/x.gguf?"}},
		"broken ones": {
			files{"p/a/x.gguf": nil, "p/a/y.gguf": nil}, map[string]string{"p/a@x": "p/a/x.gguf?", "p/a@y": "p/a/y.gguf?"},
		},
		"a broken flat one": {files{"tiny-f32.gguf": nil}, map[string]string{"local/tiny-f32": "tiny-f32.gguf?"}},
		"the same key twice": {
			files{"a/b/c/x.gguf": f32, "d/b/c/x.gguf": f32}, map[string]string{"b/c@x": "a/b/c/x.gguf"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, root := catalogOf(t, tt.files)
			if diff := cmp.Diff(tt.want, paths(t, c, root)); diff != "" {
				t.Errorf("paths by key (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeys_AreSorted: clients show them in this order.
func TestKeys_AreSorted(t *testing.T) {
	t.Parallel()
	c, _ := catalogOf(t, files{"z/a/x.gguf": f32, "a/z/x.gguf": f32, "m/m/b.gguf": f32, "m/m/a.gguf": f16, "x.gguf": f32})
	var keys []string
	for _, m := range models(t, c) {
		keys = append(keys, m.Key)
	}
	if diff := cmp.Diff([]string{"a/z", "local/x", "m/m@f16", "m/m@f32", "z/a"}, keys); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParamsString(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		n     int64
		label string
		want  string
	}{
		{0, "", ""},
		{-1, "", ""},
		{0, "8x7B", "8x7B"},
		{7_241_732_096, "7B-Instruct", "7B-Instruct"},
		{1_500, "", "2K"},
		{576_000, "", "576K"},
		{999_000, "", "999K"},
		{1_000_000, "", "1M"},
		{1_918_080, "", "1.9M"},
		{22_000_000, "", "22M"},
		{137_000_000, "", "137M"},
		{494_032_768, "", "494M"},
		{1_000_000_000, "", "1B"},
		{1_543_714_304, "", "1.5B"},
		{7_000_000_000, "", "7B"},
		{7_241_732_096, "", "7.2B"},
		{13_015_864_320, "", "13B"},
		{70_553_706_496, "", "70.6B"},
		{1_026_408_232_448, "", "1026.4B"},
	} {
		if got := (Model{Parameters: tt.n, SizeLabel: tt.label}).ParamsString(); got != tt.want {
			t.Errorf("%d, label %q: %q, want %q", tt.n, tt.label, got, tt.want)
		}
	}
}
