package schedule

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
