package catalog

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// safetensors returns a file with 16-bit or packed tensors by name.
func safetensors(format string, all map[string][]int) []byte {
	header := map[string]any{"__metadata__": map[string]string{"format": format}}
	end := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		shape := all[name]
		kind, width, n := "BF16", 2, 1
		if strings.HasSuffix(name, ".packed.weight") {
			kind, width = "U32", 4
		}
		for _, d := range shape {
			n *= d
		}
		header[name] = map[string]any{"dtype": kind, "shape": shape, "data_offsets": []int{end, end + n*width}}
		end += n * width
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(file, text...), make([]byte, end)...)
}

// mlxModel returns a quantized model with 8192 weights of 4 bits, and 100 of 16.
func mlxModel(more files) files {
	all := files{
		"config.json": []byte(`{"model_type":"qwen3","max_position_embeddings":40960,"quantization":{"group_size":64,"bits":4},
			"num_experts":8,"num_experts_per_tok":2}`),
		"model.safetensors": safetensors("mlx", map[string][]int{
			"layer.packed.weight": {8, 128}, "layer.packed.scales": {128}, "layer.packed.biases": {128}, "norm.weight": {100},
		}),
		"chat_template.jinja": []byte("{% if tools %}<tool_call>{{ tool_call.name }}{% endif %}{% if enable_thinking %}{% endif %}"),
		"tokenizer.json":      []byte(`{"version":"1.0","added_tokens":[{"id":1,"content":"<think>"},{"id":2,"content":"</think>"}],"model":{}}`),
	}
	maps.Copy(all, more)
	maps.DeleteFunc(all, func(_ string, content []byte) bool { return content == nil })
	return all
}

func TestMLX(t *testing.T) {
	t.Parallel()
	whole := mlxModel(nil)
	weights := int64(len(whole["model.safetensors"]))
	base := Model{
		Key: "mlx-community/qwen3-4b-4bit", Publisher: "mlx-community", DisplayName: "Qwen3-4B-4bit", Layout: LayoutPlain,
		SizeBytes: weights, Format: FormatMLX, Type: TypeLLM, Architecture: "qwen3", Quantization: Quantization{Name: "4bit", BitsPerWeight: 4.64},
		Parameters: 8292, MaxContextLength: 40960, ToolUse: true, Reasoning: Reasoning{Options: []string{"off", "on"}, Default: "on"},
		Experts: 8, ExpertsUsed: 2,
	}
	model := func(change func(*Model)) *Model {
		m := base
		change(&m)
		return &m
	}
	sees := safetensors("mlx", map[string][]int{"vision_tower.weight": {4}, "norm.weight": {100}})
	plain := safetensors("mlx", map[string][]int{"norm.weight": {100}})
	torch := safetensors("pt", map[string][]int{"norm.weight": {100}})
	broken := func(reason string) *Model {
		return &Model{
			Key: base.Key, Publisher: base.Publisher, DisplayName: base.DisplayName, Layout: LayoutPlain, Format: FormatMLX, Err: errors.New(reason),
		}
	}
	for name, tt := range map[string]struct {
		files files
		want  *Model // nil: it is none
	}{
		"a chat model": {nil, &base},
		"the index says how many": {
			files{"model.safetensors.index.json": []byte(`{"metadata":{"total_size":1,"total_parameters":4000000000},"weight_map":{"a":"model.safetensors"}}`)},
			model(func(m *Model) { m.Parameters, m.Quantization.BitsPerWeight = 4_000_000_000, 0 }),
		},
		"without quantization": {
			files{"config.json": []byte(`{"model_type":"llama","max_position_embeddings":2048}`), "model.safetensors": plain},
			model(func(m *Model) {
				m.Architecture, m.MaxContextLength, m.Quantization, m.Parameters = "llama", 2048, Quantization{Name: "BF16", BitsPerWeight: 16}, 100
				m.SizeBytes, m.Experts, m.ExpertsUsed = int64(len(plain)), 0, 0
			}),
		},
		"another mode": {
			files{"config.json": []byte(`{"model_type":"gpt_oss","max_position_embeddings":4096,"quantization":{"bits":4,"mode":"mxfp4"}}`)},
			model(func(m *Model) {
				m.Architecture, m.MaxContextLength, m.Quantization.Name, m.Experts, m.ExpertsUsed = "gpt_oss", 4096, "mxfp4", 0, 0
			}),
		},
		"with images, which the server doesn't take": {
			files{
				"config.json":       []byte(`{"model_type":"qwen2_vl","vision_config":{"depth":1},"text_config":{"max_position_embeddings":1024}}`),
				"model.safetensors": sees,
			},
			model(func(m *Model) {
				m.Architecture, m.MaxContextLength, m.Quantization, m.Parameters = "qwen2_vl", 1024, Quantization{Name: "BF16", BitsPerWeight: 16}, 104
				m.SizeBytes, m.Experts, m.ExpertsUsed = int64(len(sees)), 0, 0
			}),
		},
		"a layer with more bits": {
			files{"config.json": []byte(`{"model_type":"x","quantization":{"bits":4,"mode":"affine","layer.packed":{"group_size":64,"bits":8},"other":false}}`)},
			model(func(m *Model) {
				m.Architecture, m.Parameters, m.Quantization.BitsPerWeight = "x", 4196, 9.17
				m.MaxContextLength, m.Experts, m.ExpertsUsed = 0, 0, 0
			}),
		},
		"quantized by another tool in another way": {
			files{"config.json": []byte(`{"model_type":"mlx","text_config":{"quantization_config":{"quant_method":"mxfp4"}}}`)},
			model(func(m *Model) {
				m.Architecture, m.Quantization.Name, m.MaxContextLength, m.Experts, m.ExpertsUsed = "mlx", "mxfp4", 0, 0, 0
			}),
		},
		"a card": {
			files{
				"config.json": []byte(`{"model_type":"llama","max_position_embeddings":2048}`), "model.safetensors": torch,
				"README.md": []byte("---\ntags:\n- a\nlibrary_name: mlx\n---\n# x"),
			},
			model(func(m *Model) {
				m.Architecture, m.MaxContextLength, m.Quantization, m.Parameters = "llama", 2048, Quantization{Name: "BF16", BitsPerWeight: 16}, 100
				m.SizeBytes, m.Experts, m.ExpertsUsed = int64(len(torch)), 0, 0
			}),
		},
		"a card that only talks of it": {
			files{
				"config.json": []byte(`{"model_type":"llama"}`), "model.safetensors": torch,
				"README.md": []byte("---\nlibrary_name: transformers\n---\nlibrary_name: mlx\n"),
			}, nil,
		},
		"quantized by another tool": {
			files{"config.json": []byte(`{"model_type":"llama","max_position_embeddings":2048,"quantization":{"bits":8}}`), "model.safetensors": torch},
			model(func(m *Model) {
				m.Architecture, m.MaxContextLength, m.Quantization, m.Parameters = "llama", 2048, Quantization{Name: "8bit", BitsPerWeight: 16}, 100
				m.SizeBytes, m.Experts, m.ExpertsUsed = int64(len(torch)), 0, 0
			}),
		},
		"an embedding model": {
			files{"modules.json": []byte("[]")},
			model(func(m *Model) { m.Type, m.ToolUse, m.Reasoning = TypeEmbedding, false, Reasoning{} }),
		},
		"odd numbers": {
			files{"config.json": []byte(`{"model_type":"x","max_position_embeddings":"many","n_ctx":-1,"num_experts":1e99,"quantization":{"bits":4}}`)},
			model(func(m *Model) { m.Architecture, m.MaxContextLength, m.Experts, m.ExpertsUsed = "x", 0, 0, 0 }),
		},
		"with the number of its tokens": {
			files{"config.json": []byte(`{"model_type":"qwen3","text_config":{"vocab_size":300},"quantization":{"bits":4}}`)},
			model(func(m *Model) { m.Vocabulary, m.MaxContextLength, m.Experts, m.ExpertsUsed = 300, 0, 0, 0 }),
		},
		"with another number of logits": {
			files{
				"config.json": []byte(`{"model_type":"llama","vocab_size":300}`),
				"model.safetensors": safetensors("mlx", map[string][]int{
					"language_model.lm_head.weight": {4, 2}, "language_model.model.embed_tokens.weight": {5, 2}, "model.layers.0.output.weight": {9, 1},
				}),
			},
			model(func(m *Model) {
				m.Architecture, m.Vocabulary, m.MaxContextLength, m.Experts, m.ExpertsUsed = "llama", 4, 0, 0, 0
				m.Quantization, m.Parameters, m.SizeBytes = Quantization{Name: "BF16", BitsPerWeight: 16}, 27, 362
			}),
		},
		"with a program": {
			files{"config.json": []byte(`{"model_type":"x","model_file":"model.py","quantization":{"bits":4}}`)},
			model(func(m *Model) {
				m.Architecture, m.HasCode, m.MaxContextLength, m.Experts, m.ExpertsUsed = "x", true, 0, 0, 0
			}),
		},
		"a torch model":           {files{"config.json": []byte(`{"model_type":"llama"}`), "model.safetensors": torch}, nil},
		"an adapter":              {files{"model.safetensors": nil, "adapters.safetensors": plain}, nil},
		"another's configuration": {files{"config.json": []byte(`[]`)}, nil},
		"truncated": {
			files{"model.safetensors": whole["model.safetensors"][:weights-1]}, broken("its file model.safetensors is truncated; fetch it again"),
		},
		"a part missing": {
			files{"model.safetensors.index.json": []byte(`{"weight_map":{"a":"model.safetensors","b":"model-2.safetensors"}}`)},
			broken("its file model-2.safetensors is missing; fetch it again"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, root := catalogOf(t, nil)
			setFormats(c, FormatGGUF, FormatMLX)
			for rel, content := range mlxModel(tt.files) {
				write(t, root, "mlx-community/Qwen3-4B-4bit/"+rel, content)
			}
			var want []Model
			if tt.want != nil {
				m := *tt.want
				m.Path = filepath.Join(root, "mlx-community", "Qwen3-4B-4bit")
				want = []Model{m}
			}
			ignore := []string{"Changed", "Variants", "Template"}
			if tt.want != nil && tt.want.Err != nil {
				ignore = append(ignore, "SizeBytes")
			}
			if diff := cmp.Diff(want, models(t, c), cmpopts.IgnoreFields(Model{}, ignore...), sameText); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			setFormats(c, FormatGGUF)
			if all := models(t, c); len(all) > 0 {
				t.Errorf("listed without an engine: %v", all)
			}
		})
	}
}

// TestMLX_InTheHubsCache: the folder is that of the revision, and shares a name with the model's GGUF files.
func TestMLX_InTheHubsCache(t *testing.T) {
	t.Parallel()
	c, root := catalogOf(t, files{"mlx-community/Tiny-GGUF/tiny.gguf": f32})
	setFormats(c, FormatGGUF, FormatMLX)
	for rel, content := range mlxModel(nil) {
		write(t, root, "models--mlx-community--Tiny-MLX/blobs/"+rel, content)
		link(t, root, "models--mlx-community--Tiny-MLX/snapshots/1/"+rel, "../../blobs/"+rel)
	}
	want := map[string]string{
		"mlx-community/tiny@4bit": "models--mlx-community--Tiny-MLX/snapshots/1", "mlx-community/tiny@f32": "mlx-community/Tiny-GGUF/tiny.gguf",
	}
	if diff := cmp.Diff(want, paths(t, c, root)); diff != "" {
		t.Errorf("paths by key (-want +got):\n%s", diff)
	}
	setFormats(c, FormatMLX)
	if diff := cmp.Diff(map[string]string{"mlx-community/tiny": want["mlx-community/tiny@4bit"]}, paths(t, c, root)); diff != "" {
		t.Errorf("without the other format (-want +got):\n%s", diff)
	}
}

// FuzzForeignJSON: invalid files of other programs are only errors, and never lead out of the folder.
func FuzzForeignJSON(f *testing.F) {
	f.Add(ollamaManifest("model", "sha256:"+digestA, "projector", "sha256:"+digestB))
	f.Fuzz(func(t *testing.T, text []byte) {
		blobs, _ := OllamaBlobs(text)
		for _, name := range blobs {
			if filepath.Base(name) != name || len(name) != len("sha256-")+64 {
				t.Fatalf("the blob %q", name)
			}
		}
		if publisher, repo, ok := repositoryOfURL(string(text)); ok && (strings.Contains(publisher+repo, "/") || publisher == "" || repo == "") {
			t.Fatalf("%q, %q", publisher, repo)
		}
		if publisher, repo, ok := repositoryOfName(string(text)); ok && (publisher == "" || repo == "") {
			t.Fatalf("%q, %q", publisher, repo)
		}
	})
}

// TestLookup_InAFormat: a repository's name says which of its models is meant, whichever is older.
func TestLookup_InAFormat(t *testing.T) {
	t.Parallel()
	all := files{"p/m-GGUF/m.gguf": f32}
	for rel, content := range mlxModel(nil) {
		all["p/m-MLX/"+rel] = content
	}
	c, _ := catalogOf(t, all)
	setFormats(c, FormatGGUF, FormatMLX)
	for name, want := range map[string]Format{"p/m-mlx": FormatMLX, "P/M-MLX ": FormatMLX, "p/m-gguf": FormatGGUF} {
		m, err := c.Lookup(t.Context(), name, "p/m")
		if err != nil || m.Format != want {
			t.Errorf("%s: %s, %v", name, m.Key, err)
		}
	}
}
