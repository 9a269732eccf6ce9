package supervisor

import (
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
)

// Spec is what a model is loaded with. Two instances of one model may differ in it. It isn't changed once it is in use.
type Spec struct {
	Engine         string // the name of a Process
	Model          catalog.Model
	Draft          *catalog.Model // for speculative decoding; nil: none
	ContextLength  int            // tokens that one request gets
	Parallel       int            // requests at a time: the engine's slots
	BatchSize      int            // tokens of a prompt that are evaluated at a time; 0: the engine's choice
	FlashAttention Toggle
	OffloadKV      Toggle   // the cache of keys and values on the GPU
	Experts        int      // of a mixture of experts, how many answer; 0: as many as the model says
	PromptCache    int64    // bytes of prompts' states that the engine may keep beside its slots
	Checkpoints    int      // of a context that can't be cut back, how many the engine may keep for each slot; 0: its choice
	Private        bool     // requests of different owners share no prompts: each is given slots by name
	Args           []string // further arguments, by the operator's hand
	Unconfined     bool     // run it without a sandbox
	Readable       []string // further files and folders that it may read, and execute, in its sandbox

	// What follows is no concern of the process.

	Memory      int64         // estimate of what all this takes, in bytes
	Reserve     int64         // what of it is taken bit by bit: the prompt cache and the checkpoints
	TTL         time.Duration // unload it when nobody has used it for so long; 0: never
	Pinned      bool          // never evict it
	AutoRestart bool          // start it again after a crash, also while no request asks for it
	Smaller     []Size        // in which it may be loaded rather than that what is in use is evicted, the largest first
	Origin      any           // the caller's own note of how this came about
}

// isProcessOf tells whether a process that was started with s is as good for o.
func (s *Spec) isProcessOf(o *Spec) bool {
	return s.Engine == o.Engine && s.ContextLength == o.ContextLength && s.Parallel == o.Parallel &&
		s.BatchSize == o.BatchSize && s.FlashAttention == o.FlashAttention && s.OffloadKV == o.OffloadKV &&
		s.Experts == o.Experts && s.PromptCache == o.PromptCache && s.Checkpoints == o.Checkpoints && s.Private == o.Private && slices.Equal(s.Args, o.Args) &&
		s.Unconfined == o.Unconfined && slices.Equal(s.Readable, o.Readable) &&
		isSameFile(&s.Model, &o.Model) && s.draft() == o.draft() && (s.Draft == nil || isSameFile(s.Draft, o.Draft))
}

func isSameFile(a, b *catalog.Model) bool {
	return a.Path == b.Path && a.Projector == b.Projector && a.SizeBytes == b.SizeBytes && a.Changed.Equal(b.Changed)
}

// withPolicyOf is s with what is no concern of the process from o.
func (s *Spec) withPolicyOf(o *Spec) *Spec {
	n := *s
	n.Memory, n.Reserve, n.Smaller = o.Memory, o.Reserve, o.Smaller
	n.TTL, n.Pinned, n.AutoRestart, n.Origin = o.TTL, o.Pinned, o.AutoRestart, o.Origin
	return &n
}

// draft is the key of the draft model; empty without one.
func (s *Spec) draft() string {
	if s.Draft == nil {
		return ""
	}
	return s.Draft.Key
}

// Toggle is a choice that may be left to the engine.
type Toggle uint8

// The choices.
const (
	Auto Toggle = iota
	On
	Off
)

// ToggleOf is On or Off.
func ToggleOf(on bool) Toggle {
	if on {
		return On
	}
	return Off
}
