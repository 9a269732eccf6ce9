package translate

import "errors"

// Decoder turns an engine's stream into events.
//
// However the bytes are cut into calls of Feed, the events are the same, but for where a text is cut in pieces when the
// engine itself cut it. The last event is Finish or Fault, and nothing follows it. An error that emit returns ends the
// call and is returned.
type Decoder interface {
	// Feed returns [ErrCut] where the answer has ended, but the engine would go on: the rest is not to be read.
	Feed(p []byte, emit func(Event) error) error
	// Close says that the stream has ended; an answer that is incomplete then ends in a Fault.
	Close(emit func(Event) error) error
}

// ErrCut says that an answer ended before the engine's: it has come to a stop string.
var ErrCut = errors.New("the answer has ended before the engine's")

// Encoder appends what a client sees of an event, which may be nothing, to dst. There is one for each dialect.
type Encoder interface {
	Append(dst []byte, ev Event) []byte
}
