package schedule

import (
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// Demand is what a request needs.
type Demand struct {
	Key      string
	Instance string // only this instance; empty: any of the key
	Draft    string // the key of the draft model that the instance must have; empty: none, or that of the Spec
	Context  ContextNeed
	Slots    int    // capped at the slots of the instance
	Owner    string // of the request: owners share the queue fairly, and isolated instances give each its own slots
	Spec     *Spec  // how to load the model
	MayLoad  bool   // whether to load the model if it isn't loaded
	Priority bool   // go before requests without priority, each of which is overtaken at most maxOvertakes times

	Prompt       prefix.Chain // by which the slot with the best state is found; nil: any slot
	Conversation string       // the first response of the stored conversation that it belongs to; empty: none
	Unsaved      bool         // the state of its slot is never saved

	Route
}

// Route says where a request may be served. That may be an instance here, or one of a remote, which may be another node of this machine's
// cluster.
type Route struct {
	Here     bool     // only this machine may serve it
	Hops     []string // the ids of the servers that it has passed, the first one first: it isn't sent to one of them again
	Tried    []uint64 // instances of remotes that have failed to answer it, by generation
	Affinity uint64   // by which servers are ranked, alike for all requests of a conversation; 0: any will do

	TTL       *time.Duration // how long another node keeps the model loaded that it loads for the request; nil: as its settings say
	Retention *Retention     // how long another node keeps the model loaded after the request, wherever it was loaded; nil: as before
}

// Retention is what a request says of the instance that answers it: for how long it stays loaded without requests from now on.
type Retention struct {
	TTL       time.Duration // 0: unlimited
	OnlyOwned bool          // only if the owner of the request has loaded it
}

// ContextNeed estimates how many tokens of context a request needs. Only the engine can count a prompt's tokens, so these
// bounds are used to choose an instance. With the zero value, every instance fits.
type ContextNeed struct {
	Likely int // an instance with fewer isn't used while the model has one with more
	Safe   int // an instance with at least as many is preferred
}

// Use is what a request has made of a slot, as far as its answer has told.
type Use struct {
	Slot     int  // these five are set by the lease
	Begun    bool // the engine has begun to answer; else a request may have been sent
	Restored int  // tokens of the state that was restored before; 0: none
	Emptied  bool // a restore has failed, which has emptied the slot
	Saved    int  // tokens of what the slot held before that were saved; 0: nothing was

	Prompt     int           // tokens of the prompt; 0: unknown
	Cached     int           // those of them that the slot had already
	Completion int           // tokens of the answer so far
	PromptTime time.Duration // spent on the other tokens of the prompt
}
