package catalog

import "fmt"

// Shape is how a model is to be run, as far as that decides the memory it takes. The zero value is one slot of the model's
// whole context, with the engine's defaults.
type Shape struct {
	ContextLength int // of one slot, in tokens; 0: the model's maximum
	Parallel      int // slots, each with its own context; 0: one
	BatchSize     int // tokens of a logical batch; 0: the engine's 2048
	MicroBatch    int // tokens that are computed at a time; 0: the engine's 512
	ExpertsUsed   int // for each token; 0: as the model says

	// NoFlashAttention says that attention is computed the long way, which takes far more memory for a long context.
	NoFlashAttention bool
	// KeyType and ValueType are how the cache is stored, in the engine's words, e.g. "q8_0"; empty: "f16".
	KeyType, ValueType string
}

// Memory is what running a model takes, in bytes, on all devices together. What a model's file can't tell is not in it: the
// engine itself (some 25 MB), its prompt cache and its context checkpoints, whose size and number are settings. Nor is a
// draft model, which is asked for its own.
type Memory struct {
	Weights   int64
	KVCache   int64 // of all slots; the state of recurrent layers, too
	Compute   int64 // the buffers of the largest computation, and the vocabulary
	Projector int64 // its weights and buffers
	Rough     bool  // the header tells too little of the cache: it is a guess

	// Checkpoint is the size of one of the context checkpoints that the engine keeps of each slot, up to a number that is
	// a setting (32 by default). Only models that forget parts of their context need them; for others it is 0.
	Checkpoint int64
}

// Total is all that is taken at once.
func (m Memory) Total() int64 { return m.Weights + m.KVCache + m.Compute + m.Projector }

// Estimate tells how much memory the model takes when it is run in a shape. It reads the headers of its files, but for a
// model that it was asked of lately, whose files haven't changed. The error says why the files can't be used.
func (m Model) Estimate(s Shape) (Memory, error) {
	if m.Err != nil {
		return Memory{}, fmt.Errorf("estimating the memory of %s: %w", m.Key, m.Err)
	}
	p, err := plans.of(m.Path)
	if err != nil {
		return Memory{}, fmt.Errorf("estimating the memory of %s: %w", m.Key, err)
	}
	memory := p.memory(s)
	if m.Projector == "" {
		return memory, nil
	}
	if p, err = plans.of(m.Projector); err != nil {
		return Memory{}, fmt.Errorf("estimating the memory of the projector of %s: %w", m.Key, err)
	}
	memory.Projector = p.projector()
	return memory, nil
}
