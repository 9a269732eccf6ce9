package node

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
)

// tokenFresh is for how long a token that was looked up is believed. Changes of this process count at once, those of
// another one on the same store after that.
const tokenFresh = 500 * time.Millisecond

// ErrNoToken says that a token is none of ours: mistyped, expired or revoked.
var ErrNoToken = errors.New("the token is not known")

// ExpiredError says that a token was valid once.
type ExpiredError struct{ At time.Time }

func (e *ExpiredError) Error() string {
	return "the token has expired, at " + e.At.UTC().Format(time.RFC3339)
}

// known is a token that was looked up a short while ago.
type known struct {
	who     *Identity
	expires time.Time
	err     error
	at      time.Time
}

// tokens are those in use, with what was looked up of them.
type tokens struct {
	mu     sync.Mutex
	looked map[[sha256.Size]byte]known
	change int                  // counts the changes of this process: what was looked up before one isn't remembered behind it
	used   map[string]time.Time // by id, since it was last written down
}

// maxLooked bounds what is remembered: also what isn't valid is.
const maxLooked = 10_000

// Verify says whose token it is. The error is [ErrNoToken], an [*ExpiredError], the context's or the store's.
func (n *Node) Verify(ctx context.Context, secret string) (*Identity, error) {
	id, ok := idOf(secret)
	if !ok {
		return nil, ErrNoToken
	}
	sum := sha256.Sum256([]byte(secret))
	now := time.Now()
	k, ok := n.tokens.remembered(sum, now)
	if !ok {
		var err error
		if k, err = n.lookUp(ctx, id, sum, now); err != nil {
			return nil, err
		}
	}
	return k.who, k.valid(now)
}

// valid is nil for a token that may be used now.
func (k *known) valid(now time.Time) error {
	if k.err == nil && !k.expires.IsZero() && !now.Before(k.expires) {
		return &ExpiredError{k.expires}
	}
	return k.err
}

// remembered is a token that was looked up so short a while ago that it is believed. It counts as used.
func (t *tokens) remembered(sum [sha256.Size]byte, now time.Time) (known, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.looked[sum]
	if !ok || now.Sub(k.at) > tokenFresh {
		return known{}, false
	}
	if k.valid(now) == nil {
		t.used[k.who.Token] = now
	}
	return k, true
}

// lookUp asks the store. That there is no such token is no error, but in what is looked up.
func (n *Node) lookUp(ctx context.Context, id string, sum [sha256.Size]byte, now time.Time) (known, error) {
	k := known{at: now, err: ErrNoToken}
	n.tokens.mu.Lock()
	change := n.tokens.change
	n.tokens.mu.Unlock()
	stored, err := n.Conversations().Token(ctx, id)
	var missing *store.NotFound
	switch {
	case errors.As(err, &missing):
	case err != nil:
		return k, err
	default:
		hash, err := hex.DecodeString(stored.Hash)
		if err == nil && subtle.ConstantTimeCompare(hash, sum[:]) == 1 {
			t := tokenOf(stored)
			k.who, k.expires, k.err = t.identity(), t.Expires, nil
		}
	}
	n.tokens.mu.Lock()
	defer n.tokens.mu.Unlock()
	if len(n.tokens.looked) >= maxLooked {
		clear(n.tokens.looked)
	}
	if n.tokens.change == change {
		n.tokens.looked[sum] = k
	}
	if k.valid(now) == nil {
		n.tokens.used[id] = now
	}
	return k, nil
}

// forgetTokens has every token looked up again, also those of requests under way.
func (n *Node) forgetTokens() {
	defer n.running.recheck()
	n.tokens.mu.Lock()
	defer n.tokens.mu.Unlock()
	clear(n.tokens.looked)
	n.tokens.change++
}
