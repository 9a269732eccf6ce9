package catalog

import (
	"cmp"

	gguf "github.com/gpustack/gguf-parser-go"
)

// compute is the size of the buffers for the largest computation, which is that of one layer for a batch of tokens. The
// factors here and below say how many vectors of which width are held at once; they are those of the engine's accounts.
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
		attention += float64(min(a.AttentionHeadCount, maxHeads)) * seen // each head's scores
		maskBytes = 4
	}
	masked := seen
	if len(a.AttentionSlidingWindowLayers) > 0 {
		masked += min(seen, float64(width(a.AttentionSlidingWindow))+batch)
	}
	return batch * (4*max(attention, p.layer(s)) + maskBytes*masked)
}

// attention is how many numbers are held for each token while it looks at the others.
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

// layer is how many numbers are held for each token in the rest of a layer.
func (p *plan) layer(s Shape) float64 {
	embedding := float64(width(p.arch.EmbeddingLength))
	within := max(float64(p.feedForward), 5.5*float64(p.arch.SSMInnerSize))
	if p.encoder {
		within += embedding
	}
	if expert := float64(p.expert); expert > 0 {
		used := float64(cmp.Or(max(0, s.ExpertsUsed), int(p.arch.ExpertUsedCount)))
		if within = max(within, used*3*expert); 2*expert < embedding { // then what they give takes more
			within = max(within, used*(3*expert+embedding))
		}
	}
	return within + 5*embedding
}

// projector is what a vision projector takes: the parser's estimate, else its weights and half as much.
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
