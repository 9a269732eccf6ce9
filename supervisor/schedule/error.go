package schedule

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Error is a refusal. It is comparable.
type Error struct {
	Kind       ErrorKind
	Message    string        // for clients
	RetryAfter time.Duration // when to try again; 0: unknown
}

func (e Error) Error() string { return e.Message }

// ErrorKind is the kind of an Error.
type ErrorKind uint8

// The kinds of errors.
const (
	LoadFailed ErrorKind = iota + 1 // the engine didn't start, or fails repeatedly
	NotLoaded                       // the model isn't loaded, and loading on first use is off
	NoInstance                      // there is no such instance
	NeverFits                       // it needs more room than there is
	QueueFull                       // too many requests wait for the model
	Closing                         // the server is shutting down
	Cancelled                       // the caller gave up
	NoFiles                         // the server is out of file descriptors
	IDTaken                         // another instance has the id
	RemoteAway                      // the remote that has the model can't be reached, or has it no longer
	NotOurs                         // a remote loads and unloads its models by itself
)

// What several waits end with.
var (
	// ErrClosing ends all waits when the server shuts down.
	ErrClosing   = Error{Kind: Closing, Message: "The server is shutting down."}
	errCancelled = Error{Kind: Cancelled, Message: "the caller gave up"}
)

// UnknownInstance is the error of an order about an instance that there is not.
func UnknownInstance(id string) Error {
	return Error{Kind: NoInstance, Message: fmt.Sprintf("No instance %q is loaded. GET /api/v1/models lists the loaded instances.", id)}
}

func idTaken(id string) Error {
	return Error{Kind: IDTaken, Message: fmt.Sprintf(
		"The identifier %q is in use. Choose another, or unload the instance that has it.", id)}
}

func noFiles(message string) Error {
	return Error{Kind: NoFiles, Message: message, RetryAfter: firstDelay}
}

func notLoaded(key string) Error {
	return Error{Kind: NotLoaded, Message: fmt.Sprintf(
		"The model %s is not loaded, and loading on first use is off. Load it with POST /api/v1/models/load.", key)}
}

func unloadedWhileLoading(id string) Error {
	return Error{Kind: LoadFailed, Message: "The model " + id + " was unloaded while it was loading."}
}

func loadFailed(in *Instance, reason string, hadNoMemory bool) Error {
	why := in.Trouble
	switch {
	case why == "":
		why = reason
	case !strings.Contains(reason, why):
		why = strings.TrimSuffix(why, ".") + "; " + reason
	}
	if hadNoMemory {
		why += ". It ran out of memory, also after room was made: load it with a shorter context_length, " +
			"fewer parallel requests, or a smaller quantization"
	} else if in.Spec.SelfDraft == HeadsDraft {
		why = strings.TrimSuffix(why, ".") + ". It was to draft with its own layers: with draft_model off in its block it doesn't"
	}
	return Error{Kind: LoadFailed, Message: fmt.Sprintf("The model %s could not be loaded: %s", in.ID, why)}
}

func backingOff(key string, f *Failure, now time.Time) Error {
	after := max(f.Until.Sub(now).Round(time.Second), time.Second)
	return Error{Kind: LoadFailed, RetryAfter: after, Message: fmt.Sprintf(
		"The model %s failed %d times in a row, and is tried again in %s. The last time: %s", key, f.Count, after,
		cmp.Or(f.Told, f.Message))}
}

func queueFull(key string, waiting int, after time.Duration) Error {
	return Error{Kind: QueueFull, RetryAfter: after, Message: fmt.Sprintf(
		"%d requests are already waiting for the model %s, which is the limit. Try again in %s.", waiting, key, after)}
}

func neverFits(spec *Spec, st *State, fixed load) Error {
	l, pinned := &st.Limits, ""
	if fixed.instances > 0 {
		pinned = fmt.Sprintf(", of which pinned models take %s", FormatBytes(fixed.bytes()))
	}
	if l.Instances > 0 && fixed.instances >= l.Instances {
		return Error{Kind: NeverFits, Message: fmt.Sprintf(
			"The model %s can't be loaded: max_loaded is %d, and pinned models take all of it. Unload one, or raise max_loaded.",
			spec.Model.Key, l.Instances)}
	}
	gpus, raise := "", "memory_budget"
	for _, g := range st.GPUsOf(spec) {
		gpus += fmt.Sprintf(", of %s %s", g.Name, budget(st.limitOf(g)))
		raise = "memory_budget or gpu_memory"
	}
	return Error{Kind: NeverFits, Message: fmt.Sprintf(
		"The model %s needs about %s with a context of %d tokens for %d requests at a time; the memory budget is %s%s%s. "+
			"Load it with a shorter context_length, or raise %s.",
		spec.Model.Key, FormatBytes(spec.Memory), spec.ContextLength, spec.Parallel, budget(l.Memory), gpus, pinned, raise)}
}

// FormatBytes describes a number of bytes, in decimal units.
func FormatBytes(n int64) string { return humanize.Bytes(uint64(max(0, n))) }

// budget is like size. A whole number of MiB is shown as such, too: the operator has set it.
func budget(n int64) string {
	if n <= 0 || n%humanize.MiByte != 0 {
		return FormatBytes(n)
	}
	return fmt.Sprintf("%s (%s)", FormatBytes(n), humanize.IBytes(uint64(n)))
}
