package node

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// How much memory the bodies of requests may take, where nobody says.
const (
	bodyShare     = 16        // this part of the machine's memory
	leastBodies   = 256 << 20 // bytes, on small machines
	ownersPart    = 4         // this part of it for each owner
	smallBody     = 64 << 10  // bytes of each body that count for the server alone, so that small bodies cost no lock
	bodyRetryTime = time.Second
)

// BusyError says that the bodies of all requests take as much memory as they may.
type BusyError struct {
	Bound      int64 // bytes
	RetryAfter time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("The requests that this server is answering take all of the %d MiB that their bodies may. Try again soon.", e.Bound>>20)
}

// bodies counts the bytes of the bodies that are held: while they are read, and until their requests have been answered.
type bodies struct {
	bound atomic.Int64
	held  atomic.Int64

	mu     sync.Mutex
	owners map[string]int64 // beyond the smallBody of each request
}

// BodyClaim is what one request holds. It is used by one goroutine at a time.
type BodyClaim struct {
	bodies *bodies
	owner  string
	bytes  int64
}

// ClaimBody begins to count a body for an owner, see [Identity.ID], or for the address of a client that has none.
func (n *Node) ClaimBody(owner string) BodyClaim { return BodyClaim{bodies: &n.bodies, owner: owner} }

// Grow counts some more bytes, before they are allocated. The error is a [*BusyError] where all bodies together would take
// more than they may, or a [*LimitError] where the owner's would. A request that is alone is never refused: its size is
// bounded by max_body.
func (c *BodyClaim) Grow(bytes int64) error {
	b := c.bodies
	bound := b.bound.Load()
	if held := b.held.Add(bytes); held > bound && held > c.bytes+bytes {
		b.held.Add(-bytes)
		return &BusyError{bound, bodyRetryTime}
	}
	if large := c.bytes + bytes - max(c.bytes, smallBody); large > 0 && !b.growOwner(c.owner, large, max(0, c.bytes-smallBody), bound/ownersPart) {
		b.held.Add(-bytes)
		return &LimitError{
			fmt.Sprintf("The bodies of your requests under way take all of the %d MiB that they may. Wait until one has been answered.", bound/ownersPart>>20), bodyRetryTime,
		}
	}
	c.bytes += bytes
	return nil
}

// growOwner is false where an owner would have too much in this request, which has its own bytes already, and in others.
func (b *bodies) growOwner(owner string, bytes, own, bound int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := b.owners[owner]
	if held+bytes > bound && held > own {
		return false
	}
	if b.owners == nil {
		b.owners = map[string]int64{}
	}
	b.owners[owner] = held + bytes
	return true
}

// Shrink gives bytes back that Grow has counted.
func (c *BodyClaim) Shrink(bytes int64) {
	if bytes == 0 {
		return
	}
	b := c.bodies
	b.held.Add(-bytes)
	if large := max(0, c.bytes-smallBody) - max(0, c.bytes-bytes-smallBody); large > 0 {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.owners[c.owner] -= large; b.owners[c.owner] <= 0 {
			delete(b.owners, c.owner)
		}
	}
	c.bytes -= bytes
}

// Release gives everything back. It may be called again, and of the zero value.
func (c *BodyClaim) Release() { c.Shrink(c.bytes) }

// bodyMemory is how many bytes all bodies may take.
func (s *Settings) bodyMemory() int64 {
	if s.BodyMemory > 0 {
		return s.BodyMemory
	}
	return max(machineMemory()/bodyShare, leastBodies)
}

// HeldBodies is how many bytes all bodies take now.
func (n *Node) HeldBodies() int64 { return n.bodies.held.Load() }
