package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/model"
)

// Spec says how a model is loaded. Instances of one model may have different ones. A Spec in use is never modified.
type Spec struct {
	Engine         string // the name of a Process; empty for a Remote
	Model          model.Model
	Draft          *model.Model  // for speculative decoding; nil: none
	Adapters       []model.Model // LoRA adapters that requests may choose, by their numbers
	SelfDraft      string        // how the model drafts without another, in llama.cpp's words: HeadsDraft or "ngram-…"; empty: it doesn't
	ContextLength  int           // tokens for each request; 0: a Remote doesn't tell
	Parallel       int           // the engine's slots: requests at the same time
	BatchSize      int           // tokens of a prompt that are evaluated at a time; 0: the engine's default
	FlashAttention Toggle
	OffloadKV      Toggle       // whether the KV cache is on the GPU
	Experts        int          // active experts of a mixture of experts; 0: the model's default
	PromptCache    int64        // bytes that the engine may use to cache prompts outside its slots
	Checkpoints    int          // context checkpoints for each slot, for a context that can't be truncated; 0: the engine's default
	Slotted        bool         // requests choose their slots
	Private        bool         // isolate owners: requests of different owners share no cached prompts
	Args           []string     // further arguments, from the configuration
	Unconfined     bool         // run it without a sandbox
	Sandbox        SandboxLevel // of its sandbox
	NoSandbox      string       // why the engine can't run in a sandbox; empty: it can
	Readable       []string     // further files and folders that it may read and execute in its sandbox
	GPULayers      *int         // how many layers are on GPUs; nil: as many as have room
	NoGPU          bool         // it is on the processor, although the engine has a GPU

	// Devices are the GPUs with memory of their own that it may be on, by the engine's names. Which of them it is on, and whether
	// wholly, is decided for each launch. None: the engine decides.
	Devices []string
	// OnlyOn says that the configuration has chosen the Devices.
	OnlyOn bool

	// Remote says that the model is on a remote, and on which; nil: it is loaded by a process here. None of the fields above but the model,
	// the context and the slots is used then.
	Remote *Remote

	// The fields below don't affect the process.

	ID          string        // of a new instance that is loaded by Load; empty: the key, or key:2 and so on
	Memory      int64         // estimated memory of the instance on this machine, in bytes
	Offload     int64         // the part of Memory that GPUs take if the model is wholly on them
	Layers      int           // of the model, the output's among them; 0: unknown
	Reserve     int64         // the part of Memory that is allocated gradually: the prompt cache and the checkpoints
	TTL         time.Duration // unload it after that long without a request; 0: never
	Pinned      bool          // never evict it
	AutoRestart bool          // start it again after a crash, also while no request asks for it
	Smaller     []Size        // smaller sizes, tried before a recently used instance is evicted, the largest first
	Recipe      any           // the caller's own note of how this came about; not used here
}

// IsProcessOf reports whether a process that was started with s can serve as one of o.
func (s *Spec) IsProcessOf(o *Spec) bool {
	return s.Engine == o.Engine && s.ContextLength == o.ContextLength && s.Parallel == o.Parallel &&
		s.BatchSize == o.BatchSize && s.FlashAttention == o.FlashAttention && s.OffloadKV == o.OffloadKV &&
		s.Experts == o.Experts && s.PromptCache == o.PromptCache && s.Checkpoints == o.Checkpoints && s.Private == o.Private &&
		slices.EqualFunc(s.Adapters, o.Adapters, func(a, b model.Model) bool { return isSameFile(&a, &b) }) &&
		s.SelfDraft == o.SelfDraft && slices.Equal(s.Args, o.Args) &&
		s.Unconfined == o.Unconfined && s.NoSandbox == o.NoSandbox && s.Sandbox == o.Sandbox &&
		slices.Equal(s.Readable, o.Readable) &&
		s.NoGPU == o.NoGPU && s.OnlyOn == o.OnlyOn && (!s.OnlyOn || slices.Equal(s.Devices, o.Devices)) &&
		(s.GPULayers == nil) == (o.GPULayers == nil) && (s.GPULayers == nil || *s.GPULayers == *o.GPULayers) &&
		isSameFile(&s.Model, &o.Model) && s.draft() == o.draft() && (s.Draft == nil || isSameFile(s.Draft, o.Draft))
}

func isSameFile(a, b *model.Model) bool {
	return a.Path == b.Path && a.Projector == b.Projector && a.SizeBytes == b.SizeBytes && a.Changed.Equal(b.Changed)
}

// draft returns the key of the draft model; empty: none.
func (s *Spec) draft() string {
	if s.Draft == nil {
		return ""
	}
	return s.Draft.Key
}

// AdapterNumber returns the number of the adapter with a key, from 0; -1: a process of the Spec has none.
func (s *Spec) AdapterNumber(key string) int {
	return slices.IndexFunc(s.Adapters, func(a model.Model) bool { return a.Key == key })
}

// HeadsDraft is the SelfDraft of a model whose own layers predict several tokens.
const HeadsDraft = "draft-mtp"

// Drafter returns the key of the model that drafts, which may be the model itself; empty: none does.
func (s *Spec) Drafter() string {
	if s.SelfDraft != "" {
		return s.Model.Key
	}
	return s.draft()
}

// Toggle is a choice that may be left to the engine.
type Toggle uint8

// The choices.
const (
	Auto Toggle = iota
	On
	Off
)

// ToggleOf returns On or Off.
func ToggleOf(on bool) Toggle {
	if on {
		return On
	}
	return Off
}

// SandboxLevel is how much an engine with a GPU may do in its sandbox. Without a GPU the levels are the same.
type SandboxLevel uint8

// The levels.
const (
	SandboxNarrow SandboxLevel = iota // what drivers are known to need
	SandboxWide                       // read all files, share memory under new names, and write all of its own files below /proc/self
)

// Size is the part of a Spec that is reduced when there is too little room.
type Size struct {
	ContextLength int // tokens for each request; 0: that of the Spec
	Parallel      int
	PromptCache   int64
	Checkpoints   int
	Memory        int64 // estimated memory of the model in this size, in bytes
	Offload       int64 // the part of Memory that a GPU takes
	Reserve       int64 // the part of Memory that is allocated gradually
}

// smaller returns the Spec in its nth smaller size, counted from 1; 0 is the Spec itself.
func (s *Spec) smaller(n int) *Spec {
	if n == 0 {
		return s
	}
	own, size := *s, s.Smaller[n-1]
	own.Parallel, own.PromptCache, own.Checkpoints = size.Parallel, size.PromptCache, size.Checkpoints
	own.ContextLength = cmp.Or(size.ContextLength, s.ContextLength)
	own.Memory, own.Offload, own.Reserve, own.Smaller = size.Memory, size.Offload, size.Reserve, s.Smaller[n:]
	return &own
}

// sizeOf returns in which size of s a process with o was started, as counted by smaller, or -1 if in none.
func (s *Spec) sizeOf(o *Spec) int {
	for n := range len(s.Smaller) + 1 {
		if s.smaller(n).IsProcessOf(o) {
			return n
		}
	}
	return -1
}
