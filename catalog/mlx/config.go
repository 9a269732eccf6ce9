// Package mlx reads what the files of an MLX model say: its configuration, the headers of its weights, and its tokenizer. A hostile file is
// an error, and takes bounded time and memory.
package mlx

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

// The files of an MLX model that describe it.
const (
	ConfigFile     = "config.json" // without it there is no model
	indexFile      = "model.safetensors.index.json"
	chatFile       = "tokenizer_config.json"
	templateFile   = "chat_template.jinja"
	vocabularyFile = "tokenizer.json"
	ModulesFile    = "modules.json" // of embedding models
	CardFile       = "README.md"
)

// The sizes up to which they are read, in bytes.
const (
	maxFile   = 64 << 20
	MaxConfig = 4 << 20  // of ConfigFile: the longest have an entry for each module
	MaxCard   = 16 << 10 // of CardFile
)

var files = []string{
	ConfigFile, indexFile, chatFile, templateFile, vocabularyFile, ModulesFile, CardFile,
}

// IsFile reports whether a name may be that of a file of an MLX model.
func IsFile(name string) bool {
	return slices.Contains(files, name) || IsWeights(name)
}

// IsWeights reports whether the engine would load a file as weights.
func IsWeights(name string) bool {
	return strings.HasPrefix(name, "model") && strings.HasSuffix(name, ".safetensors")
}

// CardSaysMLX reports whether a folder's model card names the library. Only the start of the card is read.
func CardSaysMLX(dir string) bool {
	text, err := boundedfile.ReadStart(filepath.Join(dir, CardFile), MaxCard)
	if err != nil {
		return false
	}
	head, ok := strings.CutPrefix(string(text), "---\n")
	if !ok {
		return false
	}
	head, _, _ = strings.Cut(head, "\n---")
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(line, ":")
		if key == "library_name" {
			return strings.Trim(value, " \t\r\n\"'") == "mlx"
		}
	}
	return false
}

var errNoWeights = errors.New("it has no weights; fetch it again")

// Config is the relevant part of an MLX model's config.json. In multimodal models the language model has its own part.
type Config struct {
	ModelType string `json:"model_type"`
	limits
	Text     *limits         `json:"text_config"`
	Language *limits         `json:"language_config"`
	LLM      *limits         `json:"llm_config"`
	Code     json.RawMessage `json:"model_file"`

	Quantization *lenient[Quantization] `json:"quantization"`
}

type limits struct {
	MaxPositions   count         `json:"max_position_embeddings"`
	Positions      count         `json:"n_positions"`
	Context        count         `json:"n_ctx"`
	MaxSeqLen      count         `json:"max_seq_len"`
	MaxSequence    count         `json:"max_sequence_length"`
	SeqLength      count         `json:"seq_length"`
	Scaling        lenient[rope] `json:"rope_scaling"`
	Rope           lenient[rope] `json:"rope_parameters"`
	Experts        count         `json:"num_experts"`
	LocalExperts   count         `json:"num_local_experts"`
	RoutedExperts  count         `json:"n_routed_experts"`
	ExpertsUsed    count         `json:"num_experts_per_tok"`
	ExpertsUsedToo count         `json:"top_k_experts"`
	Vocabulary     count         `json:"vocab_size"`

	// QuantizationConfig is that of models that another tool has quantized.
	QuantizationConfig *lenient[Quantization] `json:"quantization_config"`

	Layers
}

// rope says how positions are stretched beyond those of the training.
type rope struct {
	Type     string  `json:"rope_type"`
	OldType  string  `json:"type"`
	Factor   float64 `json:"factor"`
	Original count   `json:"original_max_position_embeddings"`
}

// lenient is a value whose JSON may be of any type. If that isn't T's, it has the zero value.
type lenient[T any] struct{ Value T }

// UnmarshalJSON never fails.
func (l *lenient[T]) UnmarshalJSON(text []byte) error {
	var v T
	if json.Unmarshal(text, &v) == nil {
		l.Value = v
	}
	return nil
}

// count is a positive number; any other value becomes 0.
type count int64

// UnmarshalJSON never fails.
func (c *count) UnmarshalJSON(text []byte) error {
	var n float64
	if json.Unmarshal(text, &n) == nil && n > 0 && n <= math.MaxInt32 {
		*c = count(n)
	}
	return nil
}

// parts returns the parts of the configuration that may contain limits, in order of precedence.
func (c *Config) parts() []*limits {
	all := []*limits{&c.limits, c.Text, c.Language, c.LLM}
	return slices.DeleteFunc(all, func(p *limits) bool { return p == nil })
}

// first returns the first positive number that a part has, or 0.
func (c *Config) first(of func(*limits) count) int {
	for _, p := range c.parts() {
		if n := of(p); n > 0 {
			return int(n)
		}
	}
	return 0
}

// ContextLength returns the number of positions. A factor of YaRN counts if the configuration's own limit is below what it
// gives; some models have a limit that includes it already.
func (c *Config) ContextLength() int {
	n := cmp.Or(
		c.first(func(l *limits) count { return l.MaxPositions }),
		c.first(func(l *limits) count { return cmp.Or(l.Positions, l.Context) }),
		c.first(func(l *limits) count { return cmp.Or(l.MaxSeqLen, l.MaxSequence, l.SeqLength) }),
	)
	for _, p := range c.parts() {
		for _, r := range []rope{p.Scaling.Value, p.Rope.Value} {
			long := r.Factor * float64(r.Original)
			if cmp.Or(r.Type, r.OldType) == "yarn" && n > 0 && long > float64(n) && long <= math.MaxInt32 {
				return int(long)
			}
		}
	}
	return n
}

// Vocabulary returns the number of token ids.
func (c *Config) Vocabulary() int {
	return c.first(func(l *limits) count { return l.Vocabulary })
}

// HasCode reports whether the model is built by a program of its own. Versions of mlx_lm until 0.31.3 run that unasked.
func (c *Config) HasCode() bool { return len(c.Code) > 0 && string(c.Code) != "null" }

// Experts returns the numbers of experts, and of those that are used for a token; 0: the model is dense.
func (c *Config) Experts() (all, used int) {
	for _, l := range c.parts() {
		if n := cmp.Or(l.Experts, l.LocalExperts, l.RoutedExperts); n > 1 {
			return int(n), int(cmp.Or(l.ExpertsUsed, l.ExpertsUsedToo))
		}
	}
	return 0, 0
}

// StoredAs returns how the weights are stored. It understands what other tools write as far as the engine does.
func (c *Config) StoredAs() Quantization {
	if c.Quantization != nil {
		return c.Quantization.Value
	}
	for _, p := range c.parts() {
		if p.QuantizationConfig == nil {
			continue
		}
		q := p.QuantizationConfig.Value
		switch {
		case q.Method == "mxfp4", q.Method == "bitnet":
			q.Mode = q.Method
		case q.Method == "compressed-tensors" && strings.HasPrefix(q.Layout, "nvfp4"):
			q.Mode = "nvfp4"
		}
		if q.Method == "mxfp4" || q.Method == "compressed-tensors" {
			q.Bits = 4
		}
		return q
	}
	return Quantization{}
}

// Quantization is the quantization of all modules, except those that have their own.
type Quantization struct {
	Bits   count  `json:"bits"`
	Mode   string `json:"mode"`
	Method string `json:"quant_method"` // of another tool
	Layout string `json:"format"`       // likewise

	bitsOf map[string]count // of modules with another number of bits, by path
}

// UnmarshalJSON also reads the entries of single modules, which stand beside the other ones.
func (q *Quantization) UnmarshalJSON(text []byte) error {
	type plain Quantization
	if err := json.Unmarshal(text, (*plain)(q)); err != nil {
		return err
	}
	var modules map[string]lenient[struct {
		Bits count `json:"bits"`
	}]
	if err := json.Unmarshal(text, &modules); err != nil {
		return err
	}
	for path, m := range modules {
		if m.Value.Bits > 0 {
			if q.bitsOf == nil {
				q.bitsOf = map[string]count{}
			}
			q.bitsOf[path] = m.Value.Bits
		}
	}
	return nil
}

// BitsOf returns the number of bits of a module's weights.
func (q Quantization) BitsOf(module string) count { return cmp.Or(q.bitsOf[module], q.Bits) }

// CommonName returns the common name of a quantization, such as "4bit", or "".
func (q Quantization) CommonName() string {
	switch {
	case q.Mode != "" && q.Mode != "affine":
		return q.Mode
	case q.Bits > 0:
		return fmt.Sprintf("%dbit", q.Bits)
	default:
		return ""
	}
}

// Layers are the figures in an MLX model's config.json that its cache depends on.
type Layers struct {
	Layers       count             `json:"num_hidden_layers"`
	OldLayers    count             `json:"n_layer"`
	OtherLayers  count             `json:"n_layers"`
	Hidden       count             `json:"hidden_size"`
	OldHidden    count             `json:"n_embd"`
	FeedForward  count             `json:"intermediate_size"`
	Heads        count             `json:"num_attention_heads"`
	OldHeads     count             `json:"n_head"`
	KeyHeads     count             `json:"num_key_value_heads"`
	HeadDim      count             `json:"head_dim"`
	KeyRank      count             `json:"kv_lora_rank"` // of latent attention
	KeyRope      count             `json:"qk_rope_head_dim"`
	KeyRest      count             `json:"qk_nope_head_dim"`
	ValueDim     count             `json:"v_head_dim"`
	Kinds        lenient[[]string] `json:"layer_types"`
	Window       count             `json:"sliding_window"`
	WindowEvery  count             `json:"sliding_window_pattern"` // each layer of this number has no window
	FullInterval count             `json:"full_attention_interval"`
	Type         lenient[string]   `json:"dtype"`
	OldType      lenient[string]   `json:"torch_dtype"`
}

// What mlx_lm does by default: it computes a prompt in steps of this many tokens, and enlarges caches by this many.
const (
	PromptStep = 2048
	CacheStep  = 256
)

// LanguageModel returns the figures of the language model.
func (c *Config) LanguageModel() Layers {
	for _, p := range c.parts() {
		if p.number() > 0 {
			return p.Layers
		}
	}
	return Layers{}
}

func (l *Layers) number() count { return cmp.Or(l.Layers, l.OldLayers, l.OtherLayers) }

// HiddenSize returns the width of a layer's input, in values per token.
func (l *Layers) HiddenSize() count { return cmp.Or(l.Hidden, l.OldHidden) }

// BytesPerNumber returns the size of a number in the cache, in bytes.
func (l *Layers) BytesPerNumber() float64 {
	if kind := cmp.Or(l.Type.Value, l.OldType.Value); strings.HasSuffix(kind, "float32") {
		return 4
	}
	return 2
}

// Cache returns the size of one sequence's cache of keys and values, in bytes. Layers of kinds that are known to have another
// cache or none don't count; the state of recurrent ones is small. ok is false if figures are missing.
func (l *Layers) Cache(model string, tokens float64) (bytes float64, ok bool) {
	full, windowed := l.kinds(model)
	if full+windowed == 0 {
		return 0, l.number() > 0
	}
	short := min(tokens, float64(l.Window)+PromptStep)
	heads, dim := cmp.Or(l.Heads, l.OldHeads), l.HeadDim
	if dim == 0 && heads > 0 {
		dim = l.HiddenSize() / heads
	}
	perLayer := 2 * float64(cmp.Or(l.KeyHeads, heads)) * float64(dim) // numbers that a layer keeps of a token; 0: unknown
	switch {
	case l.KeyRank > 0 && slices.Contains(unfolded, model):
		perLayer = float64(heads) * float64(l.KeyRope+l.KeyRest+l.ValueDim)
	case l.KeyRank > 0:
		perLayer = float64(l.KeyRank + l.KeyRope)
	}
	perToken := l.BytesPerNumber() * perLayer
	return perToken * (full*tokens + windowed*short), perToken > 0
}

// kinds returns the number of layers that keep all tokens, and of those that keep a window.
func (l *Layers) kinds(model string) (full, windowed float64) {
	all := float64(l.number())
	switch {
	case slices.Contains(recurrent, model):
		return 0, 0
	case len(l.Kinds.Value) > 0:
		for _, kind := range l.Kinds.Value {
			switch {
			case kind == "sliding_attention" && l.Window > 0:
				windowed++
			case strings.Contains(kind, "attention") && !strings.HasPrefix(kind, "linear"):
				full++
			}
		}
		return min(full, maxLayers), min(windowed, maxLayers)
	case l.FullInterval > 0:
		return math.Ceil(all / float64(l.FullInterval)), 0
	case l.WindowEvery > 1 && l.Window > 0:
		full = math.Floor(all / float64(l.WindowEvery))
		return full, all - full
	default:
		return all, 0
	}
}

// maxLayers bounds the number of layers of a kind.
const maxLayers = 1 << 12

// recurrent are the types of models without attention.
var recurrent = []string{"mamba", "falcon_mamba", "mamba2", "rwkv7"}

// unfolded are the types of models with latent attention for which mlx_lm caches the keys and values all the same.
var unfolded = []string{"deepseek_v2", "minicpm3"}
