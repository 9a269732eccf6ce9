package store

import (
	"encoding/json"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Turn is a request with its answer, a node in a tree of conversations.
type Turn struct {
	ID     string // chosen by the caller; unique among all owners
	Parent string // the turn that this one continues; empty for the first of a conversation
	Family string // the first turn of the conversation; set by Put
	Owner  string // owner of the token that may read it; empty: anonymous
	Model  string // key of the model
	Status Status

	// Dialect is the API that made the first turn of a conversation, for lists. Only Put uses it; turns that are read don't have it.
	Dialect string

	In, Out []translate.Item // the items that the request added, and the answer
	Request json.RawMessage  // the request's settings that are needed later, as the dialect has them; may be nil
	Usage   translate.Usage

	Created time.Time // in nanoseconds; if it is zero, Put sets it

	// Maker is the server of a cluster that makes the answer of a turn in progress, by its Node.Boot; empty: there is no cluster. Turns that
	// are read don't have it.
	Maker string
}

// Status says how an answer ended, or that it hasn't.
type Status string

// The statuses of answers.
const (
	Completed  Status = "completed"
	Incomplete Status = "incomplete" // cut off by a limit or by the client
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"   // by its owner
	InProgress Status = "in_progress" // a server is making it: see [Store.Renew]
)

var statuses = []Status{Completed, Incomplete, Failed, Cancelled, InProgress}

// MaxDepth is the largest number of turns in a conversation.
const MaxDepth = 10_000

// Bounds limits what Prune leaves.
type Bounds struct {
	// Age is how long a conversation is kept after its newest turn, with all its branches. 0: forever.
	Age time.Duration
	// Number is the number of turns to keep. If there are more, whole conversations are removed, those with the oldest newest turn
	// first. 0: no limit.
	Number int
}
