package supervisor

import "fmt"

// Error is why something was refused. It is comparable.
type Error struct {
	Kind    ErrorKind
	Message string // for whoever asked
}

func (e Error) Error() string { return e.Message }

// ErrorKind says what can be done about an Error.
type ErrorKind uint8

// The kinds of errors.
const (
	LoadFailed ErrorKind = iota + 1 // the engine didn't come up
	NotLoaded                       // the model isn't loaded, and loading on first use is off
	NoInstance                      // there is no such instance
	Closing                         // the server is shutting down
	Cancelled                       // the caller gave up
)

var errClosing = Error{Closing, "The server is shutting down."}

func noInstance(id string) Error {
	return Error{NoInstance, fmt.Sprintf("No instance %q is loaded. GET /api/v1/models lists the loaded instances.", id)}
}

func notLoaded(key string) Error {
	return Error{NotLoaded, fmt.Sprintf("The model %s is not loaded, and loading on first use is off. Load it with POST /api/v1/models/load.", key)}
}

func loadFailed(in *Instance, reason string) Error {
	why := in.Trouble
	if why == "" {
		why = reason
	}
	return Error{LoadFailed, fmt.Sprintf("The model %s could not be loaded: %s", in.ID, why)}
}
