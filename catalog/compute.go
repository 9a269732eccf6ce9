package catalog

import (
	"cmp"

	gguf "github.com/gpustack/gguf-parser-go"
)

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
