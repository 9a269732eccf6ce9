package catalog

import (
	"cmp"
	"fmt"
	"math"

	gguf "github.com/gpustack/gguf-parser-go"
)

// Shape holds the options that determine how much memory a model takes. The zero value means one slot with the model's
// whole context, and the engine's defaults.
type Shape struct {
	ContextLength int // of one slot, in tokens; 0: the model's maximum
	Parallel      int // slots, each with its own context; 0: one
	BatchSize     int // tokens of a logical batch; 0: the engine's 2048
	MicroBatch    int // tokens of a physical batch; 0: the engine's 512
	ExpertsUsed   int // per token; 0: the model's default

	// NoFlashAttention disables flash attention. Without it, a long context takes far more memory.
	NoFlashAttention bool
}

// Memory is the memory that a running model takes on all devices together, in bytes. It doesn't include the engine itself (about 25 MB),
// its prompt cache and its context checkpoints, which depend on settings, or a draft model, which has an estimate of its own.
type Memory struct {
	Weights   int64
	KVCache   int64 // of all slots, including the state of recurrent layers
	Compute   int64 // the buffers of the largest computation, and the vocabulary
	Projector int64 // its weights and buffers
	Layers    int   // of the model, the output's among them
	Rough     bool  // the cache is a guess, because the header lacks figures

	// Checkpoint is the size of a context checkpoint. The engine keeps up to 32 of them per slot by default, for models
	// that forget parts of their context. For other models it is 0.
	Checkpoint int64
}

// Total returns the sum, without checkpoints.
func (m Memory) Total() int64 { return m.Weights + m.KVCache + m.Compute + m.Projector }

// Estimate returns the memory that a model takes in a shape. It reads the headers of the files, unless they are cached
// from a recent call and the files haven't changed. The error says why the files can't be used.
func Estimate(m *Model, s Shape) (Memory, error) {
	memory, err := estimate(m, s)
	if err != nil {
		return Memory{}, fmt.Errorf("estimating the memory of %s: %w", m.Key, err)
	}
	return memory, nil
}

func estimate(m *Model, s Shape) (memory Memory, err error) {
	switch {
	case m.Err != nil:
		return Memory{}, m.Err
	case m.Format == FormatMLX:
		return mlxMemory(m, s)
	}
	p, err := plans.of(m.Path)
	if err != nil {
		return Memory{}, err
	}
	memory = p.memory(s)
	if m.Projector == "" {
		return memory, nil
	}
	if p, err = plans.of(m.Projector); err != nil {
		return Memory{}, fmt.Errorf("its projector: %w", err)
	}
	memory.Projector = p.projector()
	return memory, nil
}

// compute returns the size of the buffers for the largest computation: one layer for a batch of tokens. The factors here
// and below are the numbers of vectors of each width that exist at the same time, taken from the engine's own figures.
func (p *plan) compute(context, batch float64, s Shape) float64 {
	a := p.arch
	seen := context
	switch {
	case p.encoder:
		seen = batch
	case a.AttentionRecurrent && !a.AttentionHybrid:
		seen = 0
	}
	attention, maskBytes := p.attention(), 2.0
	if s.NoFlashAttention {
		attention += float64(min(a.AttentionHeadCount, maxHeads)) * seen // the scores of each head
		maskBytes = 4
	}
	masked := seen
	if len(a.AttentionSlidingWindowLayers) > 0 {
		masked += min(seen, float64(width(a.AttentionSlidingWindow))+batch)
	}
	return batch * (4*max(attention, p.layer(s)) + maskBytes*masked)
}

// attention returns the number of values per token in the attention part of a layer.
func (p *plan) attention() float64 {
	a := p.arch
	embedding, heads := float64(width(a.EmbeddingLength)), float64(min(a.AttentionHeadCount, maxHeads))
	key := float64(min(a.AttentionKeyLength, maxHeadLength))
	if p.latent() {
		return heads*(2*key+float64(min(a.AttentionKeyLengthMLA, maxHeadLength))) + 5*embedding
	}
	query, shared := max(float64(p.query), heads*key), float64(min(a.AttentionHeadCountKV, maxHeads))*key
	return 2*query + 2*shared + 4*embedding
}

// layer returns the number of values per token in the rest of a layer.
func (p *plan) layer(s Shape) float64 {
	embedding := float64(width(p.arch.EmbeddingLength))
	within := max(float64(p.feedForward), 5.5*float64(p.arch.SSMInnerSize))
	if p.encoder {
		within += embedding
	}
	if expert := float64(p.expert); expert > 0 {
		used := float64(cmp.Or(max(0, s.ExpertsUsed), int(p.arch.ExpertUsedCount)))
		if within = max(within, used*3*expert); 2*expert < embedding { // otherwise the experts' outputs are larger
			within = max(within, used*(3*expert+embedding))
		}
	}
	return within + 5*embedding
}

// projector returns the memory that a vision projector takes: the parser's estimate, or else 1.5 times its weights.
func (p *plan) projector() (bytes int64) {
	defer func() {
		if r := recover(); r != nil {
			bytes = bounded(1.5 * float64(p.weights))
		}
	}()
	e := p.file.EstimateLLaMACppRun(gguf.WithLLaMACppOffloadLayers(0), gguf.WithFlashAttention())
	compute := 0.0
	for _, d := range e.Devices {
		compute += float64(d.Computation.Input) + float64(max(d.Computation.Compute, d.Computation.Output))
	}
	return bounded(float64(p.weights) + compute)
}

// The engine's defaults, and the step to which it rounds up the context of a slot.
const (
	defaultBatch      = 2048
	defaultMicroBatch = 512
	contextStep       = 256
)

// The memory that an entry of the vocabulary takes, as measured.
const (
	tokenBytes = 200
	mergeBytes = 104
)

// maxAsked bounds the batch and the context that the parser is called with, in tokens. The result for a longer context is extrapolated.
const maxAsked = 1 << 20

// memory returns the memory that the model takes. The cache is the parser's estimate, which is exact for each architecture, with the
// exceptions below. The parser's estimate of the computation isn't used: it is up to twenty times too high for current engines.
func (p *plan) memory(s Shape) Memory {
	slots, context := float64(max(1, s.Parallel)), s.ContextLength
	if context <= 0 {
		context = int(min(p.arch.MaximumContextLength, math.MaxInt32))
	}
	tokens := max(1, math.Ceil(float64(context)/contextStep)) * contextStep
	batch := min(cmp.Or(max(0, s.BatchSize), defaultBatch), cmp.Or(max(0, s.MicroBatch), defaultMicroBatch), maxAsked)
	batch = int(min(float64(batch), tokens*slots))

	cache, ok := p.cache(tokens, batch)
	checkpoint := 0.0 // the part of a slot's cache that doesn't grow with the context, because earlier tokens are forgotten
	if len(p.arch.AttentionSlidingWindowLayers) > 0 || p.arch.AttentionRecurrent {
		const long, fewest = 1 << 18, 32
		half, _ := p.cache(long, fewest)
		whole, _ := p.cache(2*long, fewest)
		checkpoint = 2*half - whole
	}
	vocabulary := (tokenBytes+4*slots)*float64(p.tokens) + mergeBytes*float64(p.merges) // including the probability of each token
	return Memory{
		Weights: p.weights,
		KVCache: bounded(cache * slots),
		Compute: bounded(p.compute(tokens, float64(batch), s) + vocabulary),
		Rough:   !ok,
		Layers:  int(min(p.arch.BlockCount, maxBlocks)) + 1,

		Checkpoint: bounded(checkpoint),
	}
}

// cache returns the size of one slot's cache, in bytes. ok is false if it is a guess.
func (p *plan) cache(tokens float64, batch int) (bytes float64, ok bool) {
	if p.encoder {
		return 0, true
	}
	defer func() {
		if r := recover(); r != nil {
			bytes, ok = p.roughCache(tokens), false
		}
	}()
	if !p.believable() {
		return p.roughCache(tokens), false
	}
	asked := min(tokens, maxAsked)
	// The parser adds the logical batch to a sliding window, and the engine the one that it computes.
	e := p.file.EstimateLLaMACppRun(
		gguf.WithLLaMACppOffloadLayers(0), gguf.WithParallelSize(1), gguf.WithFlashAttention(),
		gguf.WithLLaMACppContextSize(int32(asked)),
		gguf.WithLLaMACppLogicalBatchSize(int32(batch)), gguf.WithLLaMACppPhysicalBatchSize(int32(batch)), //nolint:gosec // bounded above
		gguf.WithLLaMACppCacheKeyType(gguf.GGMLTypeF16), gguf.WithLLaMACppCacheValueType(gguf.GGMLTypeF16),
	)
	var keys, values float64
	for _, d := range e.Devices {
		keys += float64(d.KVCache.Key)
		values += float64(d.KVCache.Value)
	}
	if p.latent() { // only the values that keys and values are computed from are cached
		keys *= float64(p.arch.AttentionKeyLength) / float64(p.arch.AttentionKeyLengthMLA)
		values = 0
	}
	if keys+values == 0 {
		return p.roughCache(tokens), false
	}
	return (keys + values) * tokens / asked, true
}

// latent reports whether the model uses latent attention, which caches the values that keys and values are computed from.
func (p *plan) latent() bool {
	return p.arch.AttentionKeyLengthMLA > 0 && p.arch.AttentionValueLengthMLA > 0
}

// believable reports whether the parser can compute an estimate without overflow.
func (p *plan) believable() bool {
	a := p.arch
	for _, n := range a.AttentionHeadCountKVs {
		if n > maxHeads {
			return false
		}
	}
	return a.BlockCount <= maxBlocks && a.AttentionHeadCountKV <= maxHeads && a.AttentionHeadCount <= maxHeads &&
		max(a.AttentionKeyLength, a.AttentionValueLength, a.AttentionKeyLengthSWA, a.AttentionValueLengthSWA) <= maxHeadLength &&
		a.EmbeddingLength <= maxWidth && a.AttentionSlidingWindow <= maxWidth && a.VocabularyLength <= maxWidth &&
		max(a.SSMInnerSize, a.SSMStateSize, a.SSMGroupCount, a.KDAHeadDim, a.RWKVHeadSize) <= maxHeadLength &&
		max(a.SSMConvolutionKernel, a.ShortConvLCache, a.RWKVTokenShiftCount) <= maxHeads
}

const (
	maxHeads      = 1 << 12
	maxHeadLength = 1 << 16
)

// roughCache assumes plain attention in each layer. If the header lacks the figures for that, it returns a tenth of the weights.
func (p *plan) roughCache(tokens float64) float64 {
	a := p.arch
	length := float64(min(a.AttentionKeyLength, maxHeadLength)) + float64(min(a.AttentionValueLength, maxHeadLength))
	layers, heads := float64(min(a.BlockCount, maxBlocks)), float64(min(a.AttentionHeadCountKV, maxHeads))
	if bytes := 2 * layers * heads * length * tokens; bytes > 0 {
		return bytes
	}
	return float64(p.weights) / 10
}
