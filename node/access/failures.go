package access

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

// How wrong tokens slow down an address. The first few cost nothing; after that, each answer takes longer than the last.
const (
	failuresFree   = 5
	failureDelay   = 250 * time.Millisecond // the first delay, doubled each time
	longestDelay   = 8 * time.Second
	failuresAtOnce = 8                // delayed answers per address
	failureMemory  = 15 * time.Minute // failures older than this are forgotten
	maxFailing     = 10_000           // addresses

	// FailureRest is the Retry-After for an address that waits for too many answers.
	FailureRest = longestDelay
)

// Failures counts the wrong tokens from each address.
type Failures struct {
	mu sync.Mutex
	by map[netip.Prefix]*failing
}

type failing struct {
	count   int
	waiting int
	last    time.Time
}

// Add records a wrong token from an address, and returns when the request may be answered, or when ctx ends. It returns
// false if too many requests from the address are waiting already. Other addresses and valid tokens aren't delayed.
func (f *Failures) Add(ctx context.Context, address string) bool {
	now := time.Now()
	f.mu.Lock()
	if f.by == nil || len(f.by) >= maxFailing {
		f.by = map[netip.Prefix]*failing{}
	}
	key := networkOf(address)
	from := f.by[key]
	if from == nil || now.Sub(from.last) > failureMemory {
		from = new(failing)
		f.by[key] = from
	}
	from.count++
	from.last = now
	if from.count <= failuresFree || from.waiting >= failuresAtOnce {
		defer f.mu.Unlock()
		return from.count <= failuresFree
	}
	delay := min(failureDelay<<min(from.count-failuresFree-1, 10), longestDelay)
	from.waiting++
	f.mu.Unlock()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	from.waiting--
	return true
}

// networkOf returns the prefix that counts as one address: an IPv4 address, or an IPv6 /64, of which a client usually has all.
func networkOf(address string) netip.Prefix {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	bits := 64
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = 32
	}
	prefix, _ := ip.Prefix(bits) // the bits fit
	return prefix
}
