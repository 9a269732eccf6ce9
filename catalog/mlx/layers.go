package mlx

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

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
	perToken := l.BytesPerNumber() * l.perLayer(model)
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

// perLayer returns how many numbers a layer keeps of a token, or 0 if that is unknown.
func (l *Layers) perLayer(model string) float64 {
	heads := cmp.Or(l.Heads, l.OldHeads)
	switch {
	case l.KeyRank > 0 && slices.Contains(unfolded, model):
		return float64(heads) * float64(l.KeyRope+l.KeyRest+l.ValueDim)
	case l.KeyRank > 0:
		return float64(l.KeyRank + l.KeyRope)
	}
	dim := l.HeadDim
	if dim == 0 && heads > 0 {
		dim = l.HiddenSize() / heads
	}
	return 2 * float64(cmp.Or(l.KeyHeads, heads)) * float64(dim)
}
