package filename

import (
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckFolder(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Qwen": true, "qwen3-4b_v1.5": true, "0x": true, "comfy": true, "com10": true, "null": true,
		"": false, ".": false, "..": false, ".hidden": false, "-rf": false, "a/b": false, `a\b`: false, "a b": false, "a:b": false, "ü": false,
		"a.": false, "a..b": false, "CON": false, "nul.txt": false, "com1": false, "LPT9.x": false, strings.Repeat("a", 97): false, "a\n": false,
	} {
		if err := CheckFolder(name); (err == nil) != want {
			t.Errorf("%q: %v, want ok %v", name, err, want)
		}
	}
}

func TestIsGGUF(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"m.gguf": true, "a/M.GGUF": true, ".gguf": false, "a/.gguf": false, "m.gguf.part": false, "gguf": false} {
		if got := IsGGUF(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

func TestOtherParts(t *testing.T) {
	t.Parallel()
	for first, want := range map[string]map[int]string{
		"a/m-00001-of-00003.gguf": {2: "a/m-00002-of-00003.gguf", 3: "a/m-00003-of-00003.gguf"},
		"m-00001-of-00001.gguf":   {},
		"m-00002-of-00003.gguf":   {},
		"m.gguf":                  {},
	} {
		if diff := cmp.Diff(want, maps.Collect(OtherParts(first))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", first, diff)
		}
	}
	for range OtherParts("m-00001-of-00003.gguf") {
		break // an iterator that is left early stops
	}
}

func TestIsLaterPart(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"m-00002-of-00003.gguf": true, "a/m-00003-of-00003.GGUF": true, "m-00000-of-00003.gguf": true, "m-00000-of-00000.gguf": true,
		"m-00001-of-00003.gguf": false, "m.gguf": false, "m-0002-of-0003.gguf": false, "a-00002-of-00003/m.gguf": false,
	} {
		if got := IsLaterPart(path); got != want {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
	}
}

func TestQuantization(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"Qwen3-4B-Q4_K_M.gguf": "Q4_K_M", "qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf": "Q4_K_M", "x.Q5_K_S.gguf": "Q5_K_S",
		"m-UD-IQ2_XXS.gguf": "UD-IQ2_XXS", "gpt-oss-20b-mxfp4.gguf": "MXFP4", "Phi-3-mini-4k-instruct-q4.gguf": "Q4", "phi-fp16.gguf": "FP16",
		"BF16/m-00001-of-00004.gguf": "BF16", "Q8_0/m.gguf": "Q8_0", "m.gguf": "", "q.gguf": "", "Q8_0.gguf": "Q8_0", "m-Q4_K_M-imat.gguf": "Q4_K_M",
		"m-TQ1_0.gguf": "TQ1_0", "m-F32-Q8_0.gguf": "Q8_0", "m-Q4_0_4_8.gguf": "Q4_0_4_8", "moreQ4_0.gguf": "", "m-MXFP4_MOE.gguf": "MXFP4_MOE",
	} {
		if got := Quantization(file); got != want {
			t.Errorf("%s: %q, want %q", path.Base(file), got, want)
		}
	}
}

func TestCompanion(t *testing.T) {
	t.Parallel()
	type role struct {
		role   string
		isSure bool
	}
	for file, want := range map[string]role{
		"mmproj-Sees-F16.gguf": {Projector, true}, "sees.mmproj-q8_0.gguf": {Projector, true}, "r/imatrix.gguf": {Importance, true},
		"m-lora-f16.gguf": {Adapter, true}, "control_vector.gguf": {Adapter, true}, "ggml-vocab-bert-bge.gguf": {Vocabulary, true},
		"mtp-gemma-4-12B-it.gguf": {Drafter, false}, "MTP/gemma-4-Q8_0.gguf": {Drafter, false}, "gemma-4-E2B-it-assistant-Q4_0.gguf": {Drafter, false},
		"m-draft-Q8_0.gguf": {Drafter, false}, "m-dflash.gguf": {Drafter, false}, "EAGLE3-m.gguf": {Drafter, false},
		"a-vocoder-f16.gguf": {Vocoder, false}, "Qwen3-TTS-Tokenizer-12Hz.gguf": {Vocoder, false},
		"Qwen3.6-27B-MTP-Q4_K_M.gguf": {}, "r/m-Q4_K_M.gguf": {}, "drafty-7b.gguf": {}, "explorations.gguf": {}, "mtptext.gguf": {},
	} {
		got, isSure := Companion(file)
		if diff := cmp.Diff(want, role{got, isSure}, cmp.AllowUnexported(role{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestCompanionName(t *testing.T) {
	t.Parallel()
	for stem, want := range map[string]string{
		"mmproj-Sees-F16": "sees", "sees.mmproj-q8_0": "sees", "mmproj": "", "mmproj-model-f16": "", "sees-Q4_K_M-mmproj": "sees",
		"mtp-gemma-4-12B-it-Q8_0": "gemma-4-12b-it", "gemma-4-e2b-it-assistant-Q4_0": "gemma-4-e2b-it", "m-draft-0.5b": "m-0.5b",
	} {
		if got := CompanionName(stem); got != want {
			t.Errorf("%s: %q, want %q", stem, got, want)
		}
	}
	if got := ModelName("Sees-UD-Q4_K_XL"); got != "sees" {
		t.Errorf("the model's name is %q", got)
	}
}

// FuzzQuantization checks that no name from a hub leads to a panic, and that what is found is in the name.
func FuzzQuantization(f *testing.F) {
	for _, s := range []string{"Qwen3-4B-Q4_K_M.gguf", "mmproj-Q8_0.gguf", "a-00001-of-00002.gguf", "Q4_0-Q4_0.gguf"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if q := Quantization(name); !strings.Contains(strings.ToUpper(name), q) {
			t.Errorf("%q is said to be %q", name, q)
		}
		Companion(name)
		CompanionName(Stem(name))
		for n := range OtherParts(name) {
			if n > 3 {
				break
			}
		}
	})
}
