// Package access decides who may use a server, and how much: it verifies tokens and slows down those that guess them, follows the
// requests in progress to end those whose token no longer allows them, and enforces limits of requests, of tokens a day and of the memory
// of request bodies.
//
// The package starts no goroutines: the owner of an [Access] calls its Recheck, Save and ShareStale periodically. All methods may be
// called from any goroutine.
package access

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/store"
)

// Options are what an Access needs of its server. All of them are required.
type Options struct {
	Log     *slog.Logger
	Store   func() *store.Store  // in use; nil before the first settings
	Usage   *record.Usage        // counts the tokens that are used
	Grace   func() time.Duration // how long a verified token stays valid while the store is unreachable
	Revoked func(id string)      // is called when a token has been revoked

	IsClustered func() bool            // other servers with the store count the limits of tokens, too
	Boot        string                 // identifies this server's start among them
	Boots       func() map[string]bool // of the servers of the cluster that run, with this one
}

// Access is the access to one server.
type Access struct {
	Tokens   *Tokens
	Running  *Running
	Quota    *Quota
	Failures *Failures
	Bodies   *Bodies
}

// New returns an Access that knows of no requests yet.
func New(o Options) *Access {
	running := &Running{store: o.Store, again: make(chan struct{}, 1), of: map[string]map[*Request]struct{}{}}
	return &Access{
		Tokens:  &Tokens{Options: o, running: running, looked: map[[sha256.Size]byte]known{}, used: map[string]time.Time{}},
		Running: running, Quota: newQuota(o), Failures: new(Failures), Bodies: new(Bodies),
	}
}

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
	select {
	case <-time.After(delay):
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
