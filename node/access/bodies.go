package access

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
)

// The parts of the memory for request bodies.
const (
	ownersPart    = 4        // each owner gets 1/ownersPart of that
	smallBody     = 64 << 10 // the first bytes of each body aren't counted for its owner, so small bodies take no lock
	bodyRetryTime = time.Second
)

// BusyError is returned when the bodies of all requests have reached their memory limit.
type BusyError struct {
	Bound      int64 // bytes
	RetryAfter time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("The bodies of the requests that this server is answering have reached their limit of %s. Try again soon.",
		humanize.Bytes(uint64(max(0, e.Bound))))
}

// Bodies counts the bytes of request bodies in memory, from the first byte read until the request is answered.
type Bodies struct {
	bound atomic.Int64 // see SetBound
	held  atomic.Int64

	mu     sync.Mutex
	owners map[string]int64 // beyond the smallBody of each request
}

// BodyClaim counts the body of one request. It must be used by one goroutine at a time.
type BodyClaim struct {
	bodies *Bodies
	owner  string
	bytes  int64
}

// SetBound sets the limit of all bodies together, in bytes.
func (b *Bodies) SetBound(bytes int64) { b.bound.Store(bytes) }

// Claim begins to count a body for an owner (see [Identity.ID]), or for the client's address if it has none.
func (b *Bodies) Claim(owner string) BodyClaim { return BodyClaim{bodies: b, owner: owner} }

// Grow counts more bytes, before they are allocated. The error is a [*BusyError] if all bodies together would exceed their
// limit, or a [*LimitError] if the owner's would. The only request is never refused: max_body bounds its size.
func (c *BodyClaim) Grow(bytes int64) error {
	b := c.bodies
	bound := b.bound.Load()
	if held := b.held.Add(bytes); held > bound && held > c.bytes+bytes {
		b.held.Add(-bytes)
		return &BusyError{bound, bodyRetryTime}
	}
	large := c.bytes + bytes - max(c.bytes, smallBody)
	if large > 0 && !b.growOwner(c.owner, large, max(0, c.bytes-smallBody), bound/ownersPart) {
		b.held.Add(-bytes)
		return &LimitError{
			fmt.Sprintf("The bodies of your requests in progress have reached their limit of %s. Wait until one has been answered.",
				humanize.Bytes(uint64(max(0, bound/ownersPart)))), bodyRetryTime,
		}
	}
	c.bytes += bytes
	return nil
}

// growOwner counts bytes for an owner, unless that would exceed the bound. An owner's only request, which has mine bytes, may.
func (b *Bodies) growOwner(owner string, bytes, mine, bound int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := b.owners[owner]
	if held+bytes > bound && held > mine {
		return false
	}
	if b.owners == nil {
		b.owners = map[string]int64{}
	}
	b.owners[owner] = held + bytes
	return true
}

// Shrink undoes Grow for some of the bytes.
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

// Release undoes Grow for all bytes. It may be called more than once, and on the zero value.
func (c *BodyClaim) Release() { c.Shrink(c.bytes) }

// Held returns the size of all bodies now in memory, in bytes.
func (b *Bodies) Held() int64 { return b.held.Load() }
