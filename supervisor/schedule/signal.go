package schedule

// Signal is the meaning of a line of an engine's output.
type Signal struct {
	Kind     SignalKind
	Progress float64 // 0 to 1, with SignalProgress
	Text     string  // the engine's message, with SignalTrouble; what has happened, with SignalDead; the buffer's name, with SignalBuffer
	Bytes    int64   // with SignalBuffer
	Weights  bool    // with SignalBuffer: it has weights

	Layers, AllLayers int // with SignalLayers

	Toggle Toggle // with SignalFlashAttention
}

// SignalKind is the kind of a Signal.
type SignalKind uint8

// The kinds of signals.
const (
	SignalProgress       SignalKind = iota + 1 // the model is loading
	SignalReady                                // requests can be sent
	SignalTrouble                              // why the load will fail, if it fails
	SignalPortTaken                            // the port is in use
	SignalOutOfMemory                          // an allocation failed
	SignalBuffer                               // a permanent buffer was allocated
	SignalFlashAttention                       // whether flash attention is used
	SignalListening                            // connections are accepted; the model needn't be loaded
	SignalNoDevice                             // it doesn't find a GPU that it was to use
	SignalLayers                               // how many of the model's layers are on GPUs
	SignalReduced                              // it doesn't find the room on GPUs that it was to use
	SignalDead                                 // it can't go on, although its process lives
)
