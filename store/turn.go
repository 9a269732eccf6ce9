package store

import (
	"encoding/json"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Turn is a request and its answer: a node in a tree of conversations.
type Turn struct {
	ID     string // chosen by the caller, unique among all owners
	Parent string // the turn that this one continues; empty: it begins a conversation
	Family string // the first turn of the conversation; Put fills it in
	Owner  string // who may see it, a token's owner; empty: anonymous
	Model  string // the key of the model that answered
	Status Status

	In, Out []translate.Item // what the request added to the conversation, and what was answered
	Request json.RawMessage  // the settings of the request that are needed later, in the form of the dialect; may be nil
	Usage   translate.Usage

	Created time.Time // kept to the nanosecond; if it is zero, Put fills in the present
}

// Status says how an answer ended.
type Status string

// The statuses.
const (
	Completed  Status = "completed"
	Incomplete Status = "incomplete" // cut off by a limit or by the client
	Failed     Status = "failed"
)

// MaxDepth is how many turns a conversation may have, one after the other.
const MaxDepth = 10_000

// Bounds limit what is kept.
type Bounds struct {
	// Age is for how long a conversation is kept after its newest turn, with all of its branches. 0: for ever.
	Age time.Duration
	// Number is how many turns are kept. When there are more, the conversations whose newest turn is the oldest go, each as a
	// whole, until there are so many or fewer. 0: any number.
	Number int
}
