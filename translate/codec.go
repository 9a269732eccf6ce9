package translate

import "errors"

// Decoder decodes an engine's stream into events.
//
// The events don't depend on how the bytes are split into calls of Feed. The last event is Finish or Fault. An error
// returned by emit ends the call and is returned.
type Decoder interface {
	// Feed returns [ErrCut] if the answer has ended but the engine would go on. The rest must not be read.
	Feed(p []byte, emit func(Event) error) error
	// Close reports the end of the stream to the decoder. An incomplete answer ends in a Fault.
	Close(emit func(Event) error) error
}

// ErrCut reports that an answer ended before the engine's, for example at a stop string.
var ErrCut = errors.New("the answer has ended before the engine's")

// Encoder encodes events in a dialect. Append appends what a client receives for an event, which may be nothing.
type Encoder interface {
	Append(dst []byte, ev Event) []byte
}
