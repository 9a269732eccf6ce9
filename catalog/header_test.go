package catalog

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestHeader_OfTheShippedModel reads a real file.
func TestHeader_OfTheShippedModel(t *testing.T) {
	t.Parallel()
	c, _ := catalogOf(t, nil)
	root, err := filepath.Abs(shipped)
	if err != nil {
		t.Fatal(err)
	}
	c.SetRoots([]string{root})
	m, err := c.Lookup(t.Context(), "tinychat")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	want := Model{
		Key: "lmcaddy/tinychat", Variants: []string{"f16", "tinychat-f16"}, Publisher: "lmcaddy", DisplayName: "Tinychat",
		Path:      filepath.Join(root, "lmcaddy", "tinychat", "tinychat-f16.gguf"),
		SizeBytes: info.Size(), Changed: info.ModTime(), Layout: LayoutPlain,
		Description: "A small chat model for tests: greets, recalls a name, knows capitals, counts, repeats and calls tools. " +
			"Trained on generated conversations.",
		Reasoning: Reasoning{Options: []string{"off", "on"}, Default: "on"},
		Format:    FormatGGUF, Type: TypeLLM, Architecture: "llama", Quantization: Quantization{Name: "F16", BitsPerWeight: 16},
		Parameters: 1918080, SizeLabel: "1.9M", MaxContextLength: 8192, ToolUse: true,
	}
	if diff := cmp.Diff(want, m, cmpopts.IgnoreFields(Model{}, "Template")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHeader_OfTheOtherShippedModels checks the properties that they are for.
func TestHeader_OfTheOtherShippedModels(t *testing.T) {
	t.Parallel()
	c := New(slog.New(slog.DiscardHandler), FormatGGUF)
	c.SetRoots([]string{shipped})
	type traits struct {
		Type                 Type
		Architecture         string
		Experts, ExpertsUsed int
		Pooling              Pooling
		Reranker             bool
		Projector            string
		BitsPerWeight        float64
	}
	want := map[string]traits{
		"lmcaddy/tinychat":   {Type: TypeLLM, Architecture: "llama", BitsPerWeight: 16},
		"lmcaddy/tinydraft":  {Type: TypeLLM, Architecture: "llama", BitsPerWeight: 16},
		"lmcaddy/tinymoe":    {Type: TypeLLM, Architecture: "llama", Experts: 8, ExpertsUsed: 2, BitsPerWeight: 16},
		"lmcaddy/tinyvision": {Type: TypeLLM, Architecture: "llama", Projector: "mmproj-tinyvision-f16.gguf", BitsPerWeight: 4.5},
		"lmcaddy/tinyembed":  {Type: TypeEmbedding, Architecture: "bert", Pooling: PoolingMean, BitsPerWeight: 16},
		"lmcaddy/tinyrerank": {Type: TypeEmbedding, Architecture: "bert", Pooling: PoolingRank, Reranker: true, BitsPerWeight: 16},
	}
	got := map[string]traits{}
	for _, m := range models(t, c) {
		if m.Err != nil {
			t.Errorf("%s: %v", m.Key, m.Err)
		}
		projector := filepath.Base(m.Projector)
		if m.Projector == "" {
			projector = ""
		}
		got[m.Key] = traits{m.Type, m.Architecture, m.Experts, m.ExpertsUsed, m.Pooling, m.Reranker, projector, m.Quantization.BitsPerWeight}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeader_SaysWhatAModelIs(t *testing.T) {
	t.Parallel()
	model := func(change func(*Model)) Model {
		m := Model{
			Key: "pub/tiny", Publisher: "Pub", DisplayName: "Tiny", Layout: LayoutPlain, Format: FormatGGUF, Type: TypeLLM,
			Architecture: "llama", Quantization: Quantization{Name: "F32", BitsPerWeight: 32}, Parameters: 576, MaxContextLength: 2048,
		}
		change(&m)
		return m
	}
	tests := map[string]struct {
		meta map[string]any
		want Model
	}{
		"a chat model": {nil, model(func(*Model) {})},
		"another quantization": {
			map[string]any{"general.file_type": uint32(15)}, model(func(m *Model) { m.Quantization.Name = "Q4_K_M" }),
		},
		"the quantization from the tensors": {map[string]any{"general.file_type": nil}, model(func(*Model) {})},
		"a size of its own": {
			map[string]any{"general.size_label": "8x7B"}, model(func(m *Model) { m.SizeLabel = "8x7B" }),
		},
		"a template with tools": {
			map[string]any{"tokenizer.chat_template": "{% if tools %}…{% endif %}"}, model(func(m *Model) { m.ToolUse = true }),
		},
		"a template of its own for tools": {
			map[string]any{"tokenizer.chat_template": "{{ messages }}", "tokenizer.chat_template.tool_use": "{{ documents }}"},
			model(func(m *Model) { m.ToolUse = true }),
		},
		"a template that lets it think": {
			map[string]any{"tokenizer.chat_template": "{% if enable_thinking %}"},
			model(func(m *Model) { m.Reasoning = Reasoning{Options: []string{"off", "on"}, Default: "on"} }),
		},
		"a description": {map[string]any{"general.description": "For tests."}, model(func(m *Model) { m.Description = "For tests." })},
		"a long description": {
			map[string]any{"general.description": strings.Repeat("ü", maxDescription)},
			model(func(m *Model) { m.Description = strings.Repeat("ü", maxDescription/2) + "…" }),
		},
		"a template without": {map[string]any{"tokenizer.chat_template": "{{ messages }}"}, model(func(*Model) {})},
		"no name":            {map[string]any{"general.name": nil}, model(func(m *Model) { m.DisplayName = "Tiny-GGUF" })},
		"no context length":  {map[string]any{"llama.context_length": nil}, model(func(m *Model) { m.MaxContextLength = 0 })},
		"an embedding model": {
			map[string]any{
				"general.architecture": "bert", "bert.context_length": uint32(512), "bert.block_count": uint32(1),
				"bert.pooling_type": uint32(1), "bert.attention.causal": false,
			},
			model(func(m *Model) {
				m.Type, m.Pooling, m.Architecture, m.MaxContextLength = TypeEmbedding, PoolingMean, "bert", 512
			}),
		},
		"a mean of tokens": {
			map[string]any{"llama.pooling_type": uint32(1)},
			model(func(m *Model) { m.Type, m.Pooling = TypeEmbedding, PoolingMean }),
		},
		"the first token": {
			map[string]any{"llama.pooling_type": uint32(2)},
			model(func(m *Model) { m.Type, m.Pooling = TypeEmbedding, PoolingCLS }),
		},
		"a reranker": {
			map[string]any{"llama.pooling_type": uint32(4)},
			model(func(m *Model) { m.Type, m.Pooling, m.Reranker = TypeEmbedding, PoolingRank, true }),
		},
		"pooling that its converter didn't know": {map[string]any{"llama.pooling_type": uint32(1<<32 - 1)}, model(func(*Model) {})},
		"an encoder without pooling": {
			map[string]any{
				"general.architecture": "modern-bert", "modern-bert.context_length": uint32(512), "modern-bert.block_count": uint32(1),
				"modern-bert.pooling_type": uint32(1<<32 - 1), "modern-bert.attention.causal": true,
			},
			model(func(m *Model) { m.Type, m.Architecture, m.MaxContextLength = TypeEmbedding, "modern-bert", 512 }),
		},
		"made for embeddings, by its name": {
			map[string]any{"general.name": "Tiny Embedding 0.6B"},
			model(func(m *Model) { m.Type, m.Pooling, m.DisplayName = TypeEmbedding, PoolingLast, "Tiny Embedding 0.6B" }),
		},
		"made for embeddings, by its tags": {
			map[string]any{"general.tags": []string{"transformers", "sentence-similarity"}},
			model(func(m *Model) { m.Type, m.Pooling = TypeEmbedding, PoolingLast }),
		},
		"writing by diffusion": {
			map[string]any{"general.architecture": "dream", "dream.context_length": uint32(512), "dream.block_count": uint32(1), "dream.attention.causal": false},
			model(func(m *Model) { m.Architecture, m.MaxContextLength = "dream", 512 }),
		},
		"with tags of both":                {map[string]any{"general.tags": []string{"feature-extraction", "text-generation"}}, model(func(*Model) {})},
		"embedded, but no embedding model": {map[string]any{"general.name": "Embedded-Coder"}, model(func(m *Model) { m.DisplayName = "Embedded-Coder" })},
		"pooling that isn't known": {
			map[string]any{"llama.pooling_type": uint32(9)}, model(func(m *Model) { m.Type = TypeEmbedding }),
		},
		"experts": {
			map[string]any{"llama.expert_count": uint32(8), "llama.expert_used_count": uint32(2)},
			model(func(m *Model) { m.Experts, m.ExpertsUsed = 8, 2 }),
		},
		"tokens that see each other": {
			map[string]any{"llama.attention.causal": false}, model(func(m *Model) { m.Type = TypeEmbedding }),
		},
		"the last token": {
			map[string]any{"llama.pooling_type": uint32(3)},
			model(func(m *Model) { m.Type, m.Pooling = TypeEmbedding, PoolingLast }),
		},
		"pooling that is none": {map[string]any{"llama.pooling_type": uint32(0)}, model(func(m *Model) { m.Pooling = PoolingNone })},
		"a size label that is no text": {
			map[string]any{"general.size_label": uint32(7)}, model(func(*Model) {}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := llama("Tiny", tt.meta).bytes()
			tt.want.SizeBytes = int64(len(content))
			c, root := catalogOf(t, files{"Pub/Tiny-GGUF/tiny.gguf": content})
			tt.want.Path = filepath.Join(root, "Pub", "Tiny-GGUF", "tiny.gguf")
			if diff := cmp.Diff([]Model{tt.want}, models(t, c), cmpopts.IgnoreFields(Model{}, "Changed", "Variants", "Template")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// brokenFiles are files that can't be used, with the reasons.
func brokenFiles() map[string]struct {
	content []byte
	reason  string
} {
	type broken = struct {
		content []byte
		reason  string
	}
	whole := llama("Tiny", nil).bytes()
	header := bytes.Index(whole, []byte("token_embd.weight")) + 60
	const truncated = "it is truncated: it has %d bytes, fewer than its header declares; fetch it again"
	cut := func(n int) broken {
		return broken{whole[:n], strings.ReplaceAll(truncated, "%d", strconv.Itoa(n))}
	}
	other := func(meta map[string]any, reason string) broken {
		return broken{llama("Tiny", meta).bytes(), "its header can't be read: " + reason}
	}
	return map[string]broken{
		"empty":                 {nil, "it is empty"},
		"short":                 {[]byte("GG"), "it is not a GGUF file"},
		"text":                  {[]byte("version https://git-lfs.github.com/spec/v1\n"), "it is not a GGUF file"},
		"HTML":                  {[]byte("<!doctype html><title>404</title>"), "it is not a GGUF file"},
		"only the magic":        cut(4),
		"only the version":      cut(8),
		"no metadata":           cut(24),
		"cut in the metadata":   cut(100),
		"cut late in it":        cut(250),
		"cut in the tensors":    cut(header),
		"no data":               cut(header + 40),
		"cut in the data":       cut(len(whole) - 1000),
		"the last byte missing": cut(len(whole) - 1),
		"an unknown version":    {append([]byte("GGUF\x63\x00\x00\x00"), whole[8:]...), "its header can't be read: unsupported GGUF version: 99 (supported: 1-3)"},
		"a name that is no text": other(map[string]any{"general.name": uint32(1)},
			`key "general.name" try to get type String but type Uint32`),
		"a file type that is no number": other(map[string]any{"general.file_type": "Q8_0"},
			`metadata key "general.file_type" holds a String, but it must hold a number`),
		"an alignment of zero": other(map[string]any{"general.alignment": uint32(0)}, "runtime error: integer divide by zero"),
	}
}

func TestHeader_SaysWhatIsWrongWithAFile(t *testing.T) {
	t.Parallel()
	for name, tt := range brokenFiles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, root := catalogOf(t, files{"pub/tiny/tiny.gguf": tt.content})
			m, err := c.Lookup(t.Context(), "pub/tiny")
			if err != nil {
				t.Fatal(err)
			}
			if m.Err == nil || m.Err.Error() != tt.reason {
				t.Errorf("reason %v, want %s", m.Err, tt.reason)
			}
			m.Err, m.Changed = nil, time.Time{}
			want := Model{
				Key: "pub/tiny", Variants: []string{"tiny"}, Publisher: "pub", DisplayName: "tiny", Path: filepath.Join(root, "pub", "tiny", "tiny.gguf"),
				SizeBytes: int64(len(tt.content)), Layout: LayoutPlain, Format: FormatGGUF,
			}
			if diff := cmp.Diff(want, m); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHeader_AnyCutIsAnError: a partial download is an error, not a panic.
func TestHeader_AnyCutIsAnError(t *testing.T) {
	t.Parallel()
	whole := llama("Tiny", nil).bytes()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	for n := range whole {
		if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if h := readHeader(fileAt(path, info)); h.model.Err == nil {
			t.Fatalf("the first %d of %d bytes are a model", n, len(whole))
		}
	}
}

// TestHeader_IsReadOnce: a file with the same size and time isn't read again. The test changes the content only.
func TestHeader_IsReadOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, root := catalogOf(t, files{"p/a/x.gguf": f32})
		path := filepath.Join(root, "p", "a", "x.gguf")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		check := func(when string, want map[string]string) {
			t.Helper()
			aMomentLater()
			if diff := cmp.Diff(want, paths(t, c, root)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		good, bad := map[string]string{"p/a": "p/a/x.gguf"}, map[string]string{"p/a": "p/a/x.gguf?"}
		check("at first", good)
		write(t, root, "p/a/x.gguf", bytes.Repeat([]byte{'x'}, len(f32)))
		touch(t, path, info.ModTime())
		check("changed behind its size and time", good)
		touch(t, path, info.ModTime().Add(time.Second))
		check("with another time", bad)
		write(t, root, "p/a/x.gguf", f32)
		touch(t, path, info.ModTime())
		check("mended", good)
		write(t, root, "p/a/x.gguf", f32[:len(f32)-1])
		touch(t, path, info.ModTime())
		check("with another size", bad)
	})
}

func touch(t *testing.T, path string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// TestHeader_TheNameTellsOfEmbeddings: where a header says nothing of pooling, the name of the file or of the repository does.
func TestHeader_TheNameTellsOfEmbeddings(t *testing.T) {
	t.Parallel()
	none := llama("x", map[string]any{"llama.pooling_type": uint32(0)}).bytes()
	c, _ := catalogOf(t, files{
		"p/Qwen3-Embedding-0.6B-GGUF/q.gguf": f32, "p/b-GGUF/nomic-embed-text.gguf": f32, "p/chat/c.gguf": f32, "p/none-embedding/n.gguf": none,
	})
	got := map[string]string{}
	for _, m := range models(t, c) {
		got[m.Key] = string(m.Type) + " " + string(m.Pooling)
	}
	if diff := cmp.Diff(map[string]string{
		"p/qwen3-embedding-0.6b": "embedding last", "p/b": "embedding last", "p/chat": "llm ", "p/none-embedding": "llm none",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHeader_TheNameTellsOfTheQuantization where the header has no file type, or one that nobody here knows.
func TestHeader_TheNameTellsOfTheQuantization(t *testing.T) {
	t.Parallel()
	typed := func(n any) []byte { return llama("x", map[string]any{"general.file_type": n}).bytes() }
	for file, tt := range map[string]struct {
		content []byte
		want    string
		names   []string // besides the first
	}{
		"m-UD-Q4_K_XL.gguf": {typed(uint32(15)), "Q4_K_M", []string{"p/m@ud-q4_k_xl", "m@Q4_K_XL", "p/m@q4_k_m"}},
		"m-UD-IQ2_M.gguf":   {typed(nil), "UD-IQ2_M", []string{"p/m@ud-iq2_m", "m@IQ2_M"}},
		"m-NVFP4.gguf":      {typed(uint32(39)), "NVFP4", []string{"p/m@nvfp4"}},
		"x.gguf":            {typed(uint32(40)), "Q1_0", []string{"p/m@q1_0"}},
		"m-Q2_0.gguf":       {typed(uint32(777)), "Q2_0", []string{"p/m@q2_0"}},
		"m-TQ1_0.gguf":      {typed(nil), "TQ1_0", nil},
		"m-mxfp4.gguf":      {typed(uint32(38)), "MXFP4", nil},
		"m-MXFP4_MOE.gguf":  {typed(nil), "MXFP4_MOE", nil},
		"m-fp16.gguf":       {typed(nil), "F16", nil},
		"m-Q8_0.gguf":       {typed(uint32(1024 + 1)), "F16", []string{"p/m@q8_0"}}, // guessed by its converter
		"m.gguf":            {typed(nil), "F32", nil},                               // as its tensors are
		"n.gguf":            {typed(uint32(777)), "", nil},
	} {
		c, _ := catalogOf(t, files{"p/m/" + file: tt.content})
		all := models(t, c)
		if len(all) != 1 || all[0].Quantization.Name != tt.want {
			t.Errorf("%s: %+v, want %s", file, all, tt.want)
		}
		for _, name := range tt.names {
			if m, err := c.Lookup(t.Context(), name); err != nil || filepath.Base(m.Path) != file {
				t.Errorf("%s is %v, %v", name, m.Path, err)
			}
		}
	}
}

// TestHeader_LayersThatPredict count if the file has them: some conversions keep only their number.
func TestHeader_LayersThatPredict(t *testing.T) {
	t.Parallel()
	with := map[string][]byte{}
	for name, tensor := range map[string]string{"with": "blk.1.nextn.eh_proj.weight", "without": "blk.1.attn_q.weight"} {
		f := llama(name, map[string]any{"llama.nextn_predict_layers": uint32(1), "llama.block_count": uint32(2)})
		f.tensors[tensor] = 64
		with["p/"+name+"/m.gguf"] = f.bytes()
	}
	c, _ := catalogOf(t, with)
	got := map[string]int{}
	for _, m := range models(t, c) {
		got[m.Key] = m.Heads
	}
	if diff := cmp.Diff(map[string]int{"p/with": 1, "p/without": 0}, got); diff != "" {
		t.Error(diff)
	}
}
