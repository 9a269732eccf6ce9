package catalog

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEstimate_MLX compares caches with what mlx_lm's model files allocate for a token: keys and values of each layer.
func TestEstimate_MLX(t *testing.T) {
	t.Parallel()
	const short, long = 1024, 32768
	for name, tt := range map[string]struct {
		config string
		short  int64 // bytes of a cache of 1024 tokens
		long   int64 // bytes of a cache of 32768 tokens
		rough  bool
	}{
		"grouped heads": {
			`{"num_hidden_layers":36,"hidden_size":2560,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128}`,
			36 * 2 * 8 * 128 * 2 * short, 36 * 2 * 8 * 128 * 2 * long, false,
		},
		"no length of heads": {
			`{"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4}`, 2 * 2 * 64 * 2 * short, 2 * 2 * 64 * 2 * long, false,
		},
		"old names": {`{"n_layer":2,"n_embd":64,"n_head":4}`, 2 * 2 * 64 * 2 * short, 2 * 2 * 64 * 2 * long, false},
		"wide": {
			`{"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"torch_dtype":"float32"}`, 2 * 2 * 64 * 4 * short, 2 * 2 * 64 * 4 * long, false,
		},
		"of a language model": {
			`{"model_type":"gemma3","hidden_size":1,"text_config":{"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4}}`,
			2 * 2 * 64 * 2 * short, 2 * 2 * 64 * 2 * long, false,
		},
		"latent": {
			`{"model_type":"deepseek_v3","num_hidden_layers":61,"num_attention_heads":128,"kv_lora_rank":512,"qk_rope_head_dim":64}`,
			61 * 576 * 2 * short, 61 * 576 * 2 * long, false,
		},
		"latent, and unfolded": {
			`{"model_type":"deepseek_v2","num_hidden_layers":2,"num_attention_heads":16,"kv_lora_rank":512,"qk_rope_head_dim":64,"qk_nope_head_dim":128,"v_head_dim":128}`,
			2 * 16 * 320 * 2 * short, 2 * 16 * 320 * 2 * long, false,
		},
		"a window in every other layer": {
			`{"model_type":"gpt_oss","num_hidden_layers":2,"num_attention_heads":4,"head_dim":16,"sliding_window":128,"layer_types":["sliding_attention","full_attention"]}`,
			2 * 2 * 64 * 2 * short, 2 * 64 * 2 * (long + 128 + 2048), false,
		},
		"a window in five of six layers": {
			`{"num_hidden_layers":12,"num_attention_heads":4,"head_dim":16,"sliding_window":512,"sliding_window_pattern":6}`,
			12 * 2 * 64 * 2 * short, 2 * 64 * 2 * (2*long + 10*2560), false,
		},
		"attention in every fourth layer": {
			`{"num_hidden_layers":8,"num_attention_heads":4,"head_dim":16,"full_attention_interval":4}`, 2 * 2 * 64 * 2 * short, 2 * 2 * 64 * 2 * long, false,
		},
		"attention in some layers": {
			`{"num_hidden_layers":4,"num_attention_heads":4,"head_dim":16,"layer_types":["conv","full_attention","linear_attention","mamba"]}`,
			2 * 64 * 2 * short, 2 * 64 * 2 * long, false,
		},
		"no attention":   {`{"model_type":"mamba2","num_hidden_layers":4}`, 0, 0, false},
		"no figures":     {`{"model_type":"x"}`, 1000, 1000, true},
		"absurd figures": {`{"num_hidden_layers":2147483647,"num_attention_heads":2147483647,"head_dim":2147483647}`, maxBytes, maxBytes, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "config.json", []byte(tt.config))
			m := Model{Key: "p/m", Format: FormatMLX, Path: dir, SizeBytes: 10_000, MaxContextLength: long, Vocabulary: 100}
			got, err := Estimate(&m, Shape{ContextLength: short})
			if err != nil || got.KVCache != tt.short || got.Rough != tt.rough || got.Weights != 10_000 || got.Compute < 0 {
				t.Errorf("%+v, %v, want a cache of %d", got, err, tt.short)
			}
			if got, err = Estimate(&m, Shape{}); err != nil || got.KVCache != tt.long {
				t.Errorf("with the whole context: %d, %v, want %d", got.KVCache, err, tt.long)
			}
			if two, err := Estimate(&m, Shape{Parallel: 2}); err != nil || two.KVCache != min(2*got.KVCache, maxBytes) || two.Compute < got.Compute {
				t.Errorf("twice: %+v, %v", two, err)
			}
		})
	}
	gone := Model{Key: "p/m", Format: FormatMLX, Path: filepath.Join(t.TempDir(), "none")}
	if _, err := Estimate(&gone, Shape{}); err == nil || strings.Contains(err.Error(), gone.Path) {
		t.Errorf("gone: %v", err)
	}
}

// TestMLX_OfTheShippedModel: what is known of the folder is what is known of the file that it was made of.
func TestMLX_OfTheShippedModel(t *testing.T) {
	t.Parallel()
	c, _ := catalogOf(t, nil)
	setFormats(c, FormatGGUF, FormatMLX)
	c.SetRoots([]string{shipped, shippedMLX})
	file, err := c.Lookup(t.Context(), "lmcaddy/tinychat@f16")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := c.Lookup(t.Context(), "lmcaddy/tinychat@mlx-f16")
	if err != nil {
		t.Fatal(err)
	}
	folder.Key, folder.Path, folder.DisplayName, folder.SizeLabel, folder.Description = file.Key, file.Path, file.DisplayName, file.SizeLabel, file.Description
	folder.Variants, folder.Changed, folder.SizeBytes = file.Variants, file.Changed, file.SizeBytes
	file.Format, file.Vocabulary, file.Template = FormatMLX, 765, folder.Template // which differs in its last line end
	if diff := cmp.Diff(file, folder); diff != "" {
		t.Errorf("(-file +folder):\n%s", diff)
	}
	for _, shape := range []Shape{{}, {ContextLength: 1000, Parallel: 3}} {
		folder.Path = filepath.Join(shippedMLX, "lmcaddy", "tinychat-mlx")
		of, err := Estimate(&folder, shape)
		if err != nil {
			t.Fatal(err)
		}
		file.Path, file.Format = filepath.Join(shipped, "lmcaddy", "tinychat", "tinychat-f16.gguf"), FormatGGUF
		if want, err := Estimate(&file, shape); err != nil || of.KVCache != want.KVCache {
			t.Errorf("%+v: a cache of %d, and %d of the file: %v", shape, of.KVCache, want.KVCache, err)
		}
	}
}

// TestMLX_OfTheShippedQuantizedModel: packed weights are counted as what they stand for, by the index as by the headers.
func TestMLX_OfTheShippedQuantizedModel(t *testing.T) {
	t.Parallel()
	c, _ := catalogOf(t, nil)
	setFormats(c, FormatMLX)
	c.SetRoots([]string{shippedMLX})
	m, err := c.Lookup(t.Context(), "lmcaddy/tinychat-mlx-4bit")
	if err != nil {
		t.Fatal(err)
	}
	if m.Quantization != (Quantization{Name: "4bit", BitsPerWeight: 4.51}) || m.Vocabulary != 765 || !m.ToolUse {
		t.Errorf("%+v", m)
	}
}

// shippedMLX is the folder of the MLX models in this repository.
const shippedMLX = "../testdata/mlx"
