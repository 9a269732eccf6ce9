package catalog

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/filename"
)

// headOf returns the layers of a model that predict further tokens, alone or behind its others.
func headOf(arch string, alone bool) []byte {
	f := llama("Head", map[string]any{"general.architecture": arch})
	f.tensors = map[string]int{"token_embd.weight": 512, "blk.1.nextn.eh_proj.weight": 64}
	if !alone {
		f.tensors["blk.0.attn_q.weight"] = 64
	}
	return f.bytes()
}

// TestCompanions: files beside a model that only belong to it are companions by their header, or by their name.
func TestCompanions(t *testing.T) {
	t.Parallel()
	ofArch := func(arch string) []byte { return llama("x", map[string]any{"general.architecture": arch}).bytes() }
	c, root := catalogOf(t, files{
		"hf/Raw/model.safetensors": []byte("x"), "hf/Raw/config.json": []byte("{}"),
		"hf/Bare/model-00001-of-00002.safetensors":             []byte("x"),
		"unsloth/Big-GGUF/Big-Q4_K_M.gguf":                     f32,
		"unsloth/Big-GGUF/mtp-Big.gguf":                        f16,
		"unsloth/Big-GGUF/MTP/Big-Q8_0.gguf":                   f16,
		"unsloth/Big-GGUF/Big-assistant-Q4_0.gguf":             f16,
		"unsloth/Big-GGUF/plain-name.gguf":                     headOf("llama", true),
		"unsloth/Big-GGUF/mmproj-F16.gguf":                     seesFile,
		"unsloth/Big-GGUF/Big-imatrix.gguf":                    file{meta: map[string]any{"general.type": "imatrix", "imatrix.datasets": []string{"a"}, "imatrix.chunk_count": uint32(1), "imatrix.chunk_size": uint32(512)}, tensors: map[string]int{"blk.0.attn_q.weight.in_sum2": 8}}.bytes(),
		"unsloth/Big-GGUF/lora/some.gguf":                      loraFile,
		"unsloth/Big-GGUF/voice.gguf":                          ofArch("wavtokenizer-dec"),
		"unsloth/Big-GGUF/flux.gguf":                           ofArch("flux"),
		"pub/Whole-MTP-GGUF/Whole-MTP-Q8_0.gguf":               headOf("llama", false),
		"pub/Small-DRAFT-0.5B-GGUF/Small-DRAFT-0.5B-Q4_0.gguf": f32,
		"pub/Alone-assistant-GGUF/Alone-assistant-Q8_0.gguf":   ofArch("gemma4-assistant"),
		"pub/Eagle-GGUF/one.gguf":                              ofArch("eagle3"),
		"x-draft-F32.gguf":                                     f32,
		"x-7b.gguf":                                            f16,
		"y-draft.gguf":                                         f16,
	})
	setFormats(c, FormatGGUF, FormatMLX)
	if diff := cmp.Diff([]string{"local/x-7b", "local/y-draft", "pub/small-draft-0.5b", "pub/whole-mtp", "unsloth/big"}, slices.Sorted(maps.Keys(paths(t, c, root)))); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	all, err := c.Companions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range all {
		got[p.Key] = strings.TrimSpace(p.Role + " " + p.Drafting + " of " + strings.Join(p.Of, ","))
	}
	if diff := cmp.Diff(map[string]string{
		"hf/raw@raw": "safetensors  of", "hf/bare@bare": "safetensors  of",
		"unsloth/big@mtp-big": "drafter  of unsloth/big", "unsloth/big@big-q8_0": "drafter  of unsloth/big",
		"unsloth/big@big-assistant-q4_0": "drafter  of unsloth/big", "unsloth/big@plain-name": "drafter mtp of unsloth/big",
		"unsloth/big@mmproj-f16": "projector  of unsloth/big", "unsloth/big@big-imatrix": "imatrix  of unsloth/big",
		"unsloth/big@some": "adapter  of unsloth/big", "unsloth/big@voice": "vocoder  of unsloth/big",
		"pub/alone-assistant@alone-assistant-q8_0": "drafter mtp of", "pub/eagle@one": "drafter eagle3 of",
		"local/x-draft@x-draft-f32": "drafter  of local/x-7b",
	}, got); diff != "" {
		t.Errorf("companions (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"MTP-Big.gguf": "unsloth/big@mtp-big", "mtp-big": "unsloth/big@mtp-big", "big@mtp-big": "unsloth/big@mtp-big", "pub/eagle": "pub/eagle@one",
		"unsloth/big": "", "mmproj-f16": "",
	} {
		if found, _ := c.Companion(name, filename.Drafter, "unsloth/big"); found.Key != want {
			t.Errorf("%s is %q, want %q", name, found.Key, want)
		}
	}
	m, err := c.Lookup(t.Context(), "big")
	if err != nil || filepath.Base(m.Projector) != "mmproj-F16.gguf" {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestRemove_TakesTheDrafterAlong: without its model it would be a model itself, by its name. An adapter is somebody's own.
func TestRemove_TakesTheDrafterAlong(t *testing.T) {
	t.Parallel()
	c, root := catalogOf(t, files{"p/m/m-Q8_0.gguf": f32, "p/m/mtp-m.gguf": f16, "p/m/lora.gguf": loraFile})
	m, err := c.Lookup(t.Context(), "p/m")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Remove(t.Context(), root, m); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(root, "p", "m", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "lora.gguf" {
		t.Errorf("%v is left (%v)", left, err)
	}
}
