package catalog

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// mlxLayers are the figures in an MLX model's config.json that its cache depends on.
type mlxLayers struct {
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
	mlxPromptStep = 2048
	mlxCacheStep  = 256
)

// mlxMemory returns the memory that an MLX model takes. Figures that the configuration lacks make the cache a guess.
func mlxMemory(m *Model, s Shape) (Memory, error) {
	var config mlxConfig
	if err := readJSON(filepath.Join(m.Path, mlxConfigFile), maxMLXConfig, &config); err != nil {
		return Memory{}, fmt.Errorf("its %s can't be read", mlxConfigFile)
	}
	layers := config.layers()
	slots := float64(max(1, s.Parallel))
	context := cmp.Or(max(0, s.ContextLength), m.MaxContextLength)
	tokens := max(1, math.Ceil(float64(context)/mlxCacheStep)) * mlxCacheStep

	cache, ok := layers.cache(config.ModelType, tokens)
	if !ok {
		cache = float64(m.SizeBytes) / 10
	}
	hidden, inner := float64(layers.hidden()), float64(layers.FeedForward)
	step := min(tokens, mlxPromptStep)
	return Memory{
		Weights: m.SizeBytes,
		KVCache: bounded(cache * slots),
		Compute: bounded(step*layers.width()*(4*hidden+3*inner) + 4*slots*float64(m.Vocabulary)),
		Rough:   !ok,
	}, nil
}

// layers returns the figures of the language model.
func (c *mlxConfig) layers() mlxLayers {
	for _, p := range c.parts() {
		if p.layers() > 0 {
			return p.mlxLayers
		}
	}
	return mlxLayers{}
}

func (l *mlxLayers) layers() count { return cmp.Or(l.Layers, l.OldLayers, l.OtherLayers) }
func (l *mlxLayers) hidden() count { return cmp.Or(l.Hidden, l.OldHidden) }

// width returns the size of a number in the cache, in bytes.
func (l *mlxLayers) width() float64 {
	if kind := cmp.Or(l.Type.Value, l.OldType.Value); strings.HasSuffix(kind, "float32") {
		return 4
	}
	return 2
}

// cache returns the size of one sequence's cache of keys and values, in bytes. Layers of kinds that are known to have another
// cache or none don't count; the state of recurrent ones is small. ok is false if figures are missing.
func (l *mlxLayers) cache(model string, tokens float64) (bytes float64, ok bool) {
	full, windowed := l.kinds(model)
	if full+windowed == 0 {
		return 0, l.layers() > 0
	}
	short := min(tokens, float64(l.Window)+mlxPromptStep)
	perToken := l.width() * l.perLayer(model)
	return perToken * (full*tokens + windowed*short), perToken > 0
}

// kinds returns the number of layers that keep all tokens, and of those that keep a window.
func (l *mlxLayers) kinds(model string) (full, windowed float64) {
	all := float64(l.layers())
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
		return min(full, maxBlocks), min(windowed, maxBlocks)
	case l.FullInterval > 0:
		return math.Ceil(all / float64(l.FullInterval)), 0
	case l.WindowEvery > 1 && l.Window > 0:
		full = math.Floor(all / float64(l.WindowEvery))
		return full, all - full
	default:
		return all, 0
	}
}

// recurrent are the types of models without attention.
var recurrent = []string{"mamba", "falcon_mamba", "mamba2", "rwkv7"}

// unfolded are the types of models with latent attention for which mlx_lm caches the keys and values all the same.
var unfolded = []string{"deepseek_v2", "minicpm3"}

// perLayer returns how many numbers a layer keeps of a token, or 0 if that is unknown.
func (l *mlxLayers) perLayer(model string) float64 {
	heads := cmp.Or(l.Heads, l.OldHeads)
	switch {
	case l.KeyRank > 0 && slices.Contains(unfolded, model):
		return float64(heads) * float64(l.KeyRope+l.KeyRest+l.ValueDim)
	case l.KeyRank > 0:
		return float64(l.KeyRank + l.KeyRope)
	}
	dim := l.HeadDim
	if dim == 0 && heads > 0 {
		dim = l.hidden() / heads
	}
	return 2 * float64(cmp.Or(l.KeyHeads, heads)) * float64(dim)
}
