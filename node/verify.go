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

// While the store can't be asked, a token that was found valid is believed for longer (see [StoreSettings]).
const (
	graceTimeout = 2 * time.Second // for the store's answer where there is such a token
	graceRest    = 5 * time.Second // before the store is asked again
)

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
	at      time.Time // when the store said so
	rest    time.Time // until when the store isn't asked again, since it could not be
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
	k, isFresh := n.tokens.remembered(sum, now)
	if isFresh {
		return k.who, k.valid(now)
	}
	hasGrace := k.who != nil && now.Sub(k.at) <= n.settings.Load().Store.TokenGrace
	if hasGrace && now.Before(k.rest) {
		n.tokens.use(&k, now)
		return k.who, k.valid(now)
	}
	asking := ctx
	if hasGrace {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(ctx, graceTimeout)
		defer cancel()
	}
	found, err := n.lookUp(asking, id, sum, now)
	switch {
	case err == nil:
		return found.who, found.valid(now)
	case !hasGrace || ctx.Err() != nil:
		return nil, err
	}
	k.rest = now.Add(graceRest)
	if !n.tokens.goOn(sum, k) {
		return nil, err
	}
	n.log.Warn("the store can't be asked about a token; it was valid, and goes on for a while", "token", id, "error", err)
	n.tokens.use(&k, now)
	return k.who, k.valid(now)
}

// valid is nil for a token that may be used now.
func (k *known) valid(now time.Time) error {
	if k.err == nil && !k.expires.IsZero() && !now.Before(k.expires) {
		return &ExpiredError{k.expires}
	}
	return k.err
}

// remembered is a token that was looked up before. It is fresh, and counts as used, where that was so short a while ago
// that it is believed.
func (t *tokens) remembered(sum [sha256.Size]byte, now time.Time) (k known, isFresh bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.looked[sum]
	if !ok || now.Sub(k.at) > tokenFresh {
		return k, false
	}
	if k.valid(now) == nil {
		t.used[k.who.Token] = now
	}
	return k, true
}

// use notes that a token was used, if it is valid.
func (t *tokens) use(k *known, now time.Time) {
	if k.valid(now) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used[k.who.Token] = now
}

// goOn remembers a token that is believed though the store can't be asked. It is false if tokens were changed meanwhile.
func (t *tokens) goOn(sum [sha256.Size]byte, k known) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.looked[sum]
	if ok {
		t.looked[sum] = k
	}
	return ok
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
