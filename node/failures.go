package node

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

// How wrong tokens slow an address down. A few are mistakes; from then on each answer takes longer than the one before.
const (
	failuresFree   = 5
	failureDelay   = 250 * time.Millisecond // the first, doubled each time
	longestDelay   = 8 * time.Second
	failuresAtOnce = 8                // how many answers one address may wait for
	failureMemory  = 15 * time.Minute // after which an address begins anew
	maxFailing     = 10_000           // addresses

	// FailureRest is what an address is told to wait that has too many answers due.
	FailureRest = longestDelay
)

// failures are the addresses that wrong tokens came from.
type failures struct {
	mu sync.Mutex
	by map[netip.Prefix]*failing
}

type failing struct {
	count   int
	waiting int
	last    time.Time
}

// Failed notes that a wrong token came from an address, and returns when that may be told, or when ctx ends. It is false
// where too many from there wait already. Nobody else is kept waiting, and no valid token is.
func (n *Node) Failed(ctx context.Context, address string) bool {
	f := &n.failures
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
	delay := delayAfter(from.count)
	if delay == 0 || from.waiting >= failuresAtOnce {
		f.mu.Unlock()
		return delay == 0
	}
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

func delayAfter(failures int) time.Duration {
	if failures <= failuresFree {
		return 0
	}
	return min(failureDelay<<min(failures-failuresFree-1, 10), longestDelay)
}

// networkOf is what counts as one address: whoever has one of IPv6 has a whole network of them.
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
