package supervisor

// Event is something that has happened.
type Event interface{ event() }

type (
	// Asked adds somebody who waits.
	Asked struct{ Waiter Waiter }
	// GaveUp says that a waiter no longer waits. If it has been granted something by then, nothing happens: who gave up
	// has to give that back.
	GaveUp struct{ Waiter uint64 }
	// Returned gives slots back.
	Returned struct {
		Gen   uint64
		Slots int

		Answered bool   // what they were lent for came to its end
		Key      string // of the model, where it was Answered

		Waiter uint64 // to whom they were lent, where the instance keeps owners apart
		Used   []int  // which of them the engine has begun to use for it
	}
	// Signalled is what a process says of itself.
	Signalled struct {
		Gen    uint64
		Signal Signal
	}
	// Measured is what a process takes of the machine's memory.
	Measured struct {
		Gen      uint64
		Resident int64 // bytes
	}
	// Condemned says that a process no longer answers, though it lives.
	Condemned struct {
		Gen    uint64
		Reason string
	}
	// EndAsked says that a stranger has sent a process a signal to end. It answers as before.
	EndAsked struct{ Gen uint64 }
	// Exited says that a process has ended, with nothing of it left, or couldn't be started.
	Exited struct {
		Gen    uint64
		Reason string
		Killed bool // by the system or a stranger's hand, without a word: so a system ends what takes too much memory
		// NoFiles says that this server had no file descriptor left to start it with.
		NoFiles bool
	}
	// Configured brings other settings.
	Configured struct {
		Limits Limits
		Specs  map[uint64]*Spec // by generation: what an instance would be loaded with now
	}
	// Tick says that a Deadline has come.
	Tick struct{}
	// Closed ends everything.
	Closed struct{}
)

func (Asked) event()      {}
func (GaveUp) event()     {}
func (Returned) event()   {}
func (Signalled) event()  {}
func (Measured) event()   {}
func (Condemned) event()  {}
func (EndAsked) event()   {}
func (Exited) event()     {}
func (Configured) event() {}
func (Tick) event()       {}
func (Closed) event()     {}

// Effect is something to be done, or to be told. Effects are comparable.
type Effect interface{ effect() }

type (
	// Spawn starts an instance's process.
	Spawn struct {
		Instance string
		Gen      uint64
	}
	// Stop ends a process.
	Stop struct {
		Gen    uint64
		Reason Reason
	}
	// Grant gives a waiter what it waits for. Slots are lent until they are Returned.
	Grant struct {
		Waiter, Gen uint64
		Slots       int
		SawLoad     bool // the waiter was there before the instance was ready
	}
	// Refuse ends a wait in an error.
	Refuse struct {
		Waiter uint64
		Err    Error
	}
	// Loaded tells that an instance has become ready.
	Loaded struct{ Gen uint64 }
	// Crashed tells that a ready instance's process ended against our will. The instance is gone.
	Crashed struct{ Instance, Key, Reason string }
)

func (Spawn) effect()   {}
func (Stop) effect()    {}
func (Grant) effect()   {}
func (Refuse) effect()  {}
func (Loaded) effect()  {}
func (Crashed) effect() {}
