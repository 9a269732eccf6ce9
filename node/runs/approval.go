package runs

import (
	"context"
	"time"
)

// approvalTimeout is how long a call waits for its approval: somebody may have to be fetched, but nobody may ever come.
const approvalTimeout = time.Hour

// Ask begins to wait for the approval of a call of a tool, by its id. The function that it returns waits, and returns whether the call may be made.
func (r *Run) Ask(call string) (wait func(context.Context) bool) {
	decided := make(chan bool, 1)
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.asking == nil {
		r.asking = map[string]chan<- bool{}
	}
	r.asking[call] = decided
	return func(ctx context.Context) bool {
		select {
		case isApproved := <-decided:
			return isApproved
		case <-time.After(approvalTimeout):
		case <-ctx.Done():
		}
		r.Decide(call, false)
		return false
	}
}

// Decide approves or refuses a call, and reports whether it has waited for that.
func (r *Run) Decide(call string, isApproved bool) bool {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	decided := r.asking[call]
	if decided == nil {
		return false
	}
	delete(r.asking, call)
	decided <- isApproved
	return true
}
