package schedule

import "time"

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
