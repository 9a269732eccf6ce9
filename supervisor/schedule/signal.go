package schedule

import "slices"

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

// Signalled is a report of a process about itself.
type Signalled struct {
	Gen    uint64
	Signal Signal
}

func (ev Signalled) apply(s *stepper) {
	in := s.st.Find(ev.Gen)
	if in == nil {
		return
	}
	switch sig := ev.Signal; sig.Kind {
	case SignalProgress:
		if in.Status.IsLoading() {
			in.Status = Loading
			in.Progress = max(in.Progress, min(sig.Progress, 1))
		}
	case SignalReady:
		if in.Status.IsLoading() && !in.Retrying {
			in.Status, in.Progress, in.LoadTime, in.LastUsed = Ready, 1, s.now.Sub(in.Launched), s.now
			s.reckon(in)
			s.do(Loaded{in.Gen})
		}
	case SignalTrouble:
		if in.Trouble == "" {
			in.Trouble = sig.Text
		}
	case SignalPortTaken:
		in.PortTaken = true
	case SignalOutOfMemory:
		in.OutOfMemory = true
	case SignalNoDevice: // no load is planned on its GPUs until they are set again
		in.NoDevice = true
		for _, name := range in.On.Devices {
			if !slices.Contains(s.st.Lost, name) {
				s.st.Lost = append(slices.Clone(s.st.Lost), name)
			}
		}
	case SignalBuffer:
		in.Applied.allocated(sig)
	case SignalLayers:
		if in.Applied.AllLayers == 0 { // a draft model's follow
			in.Applied.Layers, in.Applied.AllLayers = sig.Layers, sig.AllLayers
		}
	case SignalReduced:
		in.Applied.Reduced = true
		s.tryWhole(in)
	case SignalFlashAttention:
		in.Applied.FlashAttention = sig.Toggle
	}
}
