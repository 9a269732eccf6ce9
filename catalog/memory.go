package catalog

import (
	"fmt"
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
	// KeyType and ValueType are the data types of the cache, by the engine's names, such as "q8_0"; empty: "f16".
	KeyType, ValueType string
}

// Memory is the memory that a running model takes on all devices together, in bytes. It doesn't include the engine itself
// (about 25 MB), its prompt cache and its context checkpoints, which depend on settings, or a draft model, which has an
// estimate of its own.
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
	if m.Err != nil {
		return Memory{}, fmt.Errorf("estimating the memory of %s: %w", m.Key, m.Err)
	}
	if m.Format == FormatMLX {
		memory, err := mlxMemory(m, s)
		if err != nil {
			return Memory{}, fmt.Errorf("estimating the memory of %s: %w", m.Key, err)
		}
		return memory, nil
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
