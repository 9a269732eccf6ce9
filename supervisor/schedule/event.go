package schedule

import "time"

// Event is an input of Step: something that has happened.
type Event interface{ event() }

type (
	// Asked adds a waiter.
	Asked struct{ Waiter Waiter }
	// GaveUp says that a waiter's caller has given up. It has no effect after a Grant: the caller must return what was
	// granted.
	GaveUp struct{ Waiter uint64 }
	// Returned returns leased slots.
	Returned struct {
		Gen   uint64
		Slots int

		Answered bool   // a request was answered completely
		Key      string // of the model, if Answered

		Waiter uint64 // that they were leased to
		Used   []Use  // of the slots that were used; the others are as they were

		TokenBytes float64 // of the state of a token; 0: unknown
	}
	// Signalled is a report of a process about itself.
	Signalled struct {
		Gen    uint64
		Signal Signal
	}
	// Measured is the resident memory of a process.
	Measured struct {
		Gen      uint64
		Resident int64 // bytes
	}
	// Condemned says that a process hangs.
	Condemned struct {
		Gen    uint64
		Reason string
	}
	// EndAsked says that somebody else has sent a process a signal to terminate. The process still answers.
	EndAsked struct{ Gen uint64 }
	// Exited says that a process and its descendants have exited, or that it couldn't be started.
	Exited struct {
		Gen    uint64
		Reason string
		Killed bool // by SIGKILL from outside, as the system kills a process that takes too much memory
		// OutOfMemory says that the system killed it because memory ran out.
		OutOfMemory bool
		// NoFiles says, as a sentence for clients, that the server was out of file descriptors; empty: it wasn't.
		NoFiles string
	}
	// Configured sets new settings. Without Specs, these follow.
	Configured struct {
		Limits Limits
		Specs  map[uint64]*Spec // by generation: what an instance would be loaded with now
	}
	// RestartsConfigured sets what instances that wait for their restart are started with.
	RestartsConfigured struct {
		Specs map[string]*Spec // by id
	}
	// Respecified changes what doesn't affect the process of an instance, now and after a restart. Change gets copies.
	Respecified struct {
		Gen    uint64
		Change func(*Spec)
	}
	// Savable says that the states of a process's slots can be kept.
	Savable struct{ Gen uint64 }
	// Saved is the end of a Save. Each Save has one, unless the process exits.
	Saved struct {
		Gen    uint64
		Slot   int
		Tokens int // that are kept now; 0: none
	}
	// Forgot says that something was deleted. States of slots that belong to it aren't kept any more. A field that is empty stands
	// for anything, but not all of them may be.
	Forgot struct{ Owner, Conversation, Key string }
	// Cleared says that saved states were deleted, though what they belong to is still there: it is saved again after its next request.
	// Match reports whether it is true of a model's states of an owner.
	Cleared struct{ Match func(key, owner string) bool }
	// Placed sets the models of a remote, an instance each. Away is why it can't be reached; empty: it can.
	Placed struct {
		Remote string
		Specs  []*Spec
		Away   string
	}
	// Throttled says that a remote has turned away a request on some slots, and wants no more than it has until a time.
	Throttled struct {
		Gen   uint64
		Slots int
		Until time.Time
		Why   string // a sentence; empty: it is busy
	}
	// Sampled reports the memory of the GPUs. It ends a Sample. One that isn't named is as before.
	Sampled struct{ GPUs []GPUMemory }
	// Tick says that the Deadline has passed.
	Tick struct{}
	// Closed shuts the supervisor down.
	Closed struct{}
)

func (Asked) event()              {}
func (GaveUp) event()             {}
func (Returned) event()           {}
func (Signalled) event()          {}
func (Measured) event()           {}
func (Condemned) event()          {}
func (EndAsked) event()           {}
func (Exited) event()             {}
func (Configured) event()         {}
func (RestartsConfigured) event() {}
func (Respecified) event()        {}

func (Savable) event()   {}
func (Saved) event()     {}
func (Forgot) event()    {}
func (Cleared) event()   {}
func (Tick) event()      {}
func (Closed) event()    {}
func (Placed) event()    {}
func (Throttled) event() {}
func (Sampled) event()   {}

// Effect is an output of Step: an action or an announcement. Effects are comparable.
type Effect interface{ effect() }

type (
	// Spawn starts an instance's process.
	Spawn struct {
		Instance string
		Gen      uint64
	}
	// Stop stops a process.
	Stop struct {
		Gen    uint64
		Reason Reason
	}
	// Save has the state of a slot kept.
	Save struct {
		Gen     uint64
		Slot    int
		Leaving bool // the instance is stopped afterwards
	}
	// Sample asks for the memory of the GPUs.
	Sample struct {
		Urgent bool // a load waits for it
	}
	// Grant ends a wait with success. The slots are leased until they are Returned.
	Grant struct {
		Waiter, Gen uint64
		Slots       int
		SawLoad     bool // the waiter waited for the instance's load
	}
	// Refuse ends a wait with an error.
	Refuse struct {
		Waiter uint64
		Err    Error
	}
	// Loaded announces that an instance has become ready.
	Loaded struct{ Gen uint64 }
	// Crashed announces that the process of a ready instance exited unexpectedly. The instance is gone.
	Crashed struct{ Instance, Key, Reason string }
)

func (Spawn) effect()   {}
func (Stop) effect()    {}
func (Save) effect()    {}
func (Sample) effect()  {}
func (Grant) effect()   {}
func (Refuse) effect()  {}
func (Loaded) effect()  {}
func (Crashed) effect() {}
