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

// tokenFresh is how long a verified token is cached. Changes made by this process take effect at once, those of another
// server with the same store after this time.
const tokenFresh = 500 * time.Millisecond

// While the store is unreachable, a verified token is cached for longer (see [StoreSettings]).
const (
	graceTimeout = 2 * time.Second // for the store's answer if such a token is cached
	graceRest    = 5 * time.Second // before the store is asked again
)

// ErrNoToken is returned for an unknown token, for example because it was mistyped or revoked.
var ErrNoToken = errors.New("the token is not known")

// ExpiredError is returned for a token that has expired.
type ExpiredError struct{ At time.Time }

func (e *ExpiredError) Error() string {
	return "the token has expired, at " + e.At.UTC().Format(time.RFC3339)
}

// known is a cached result of looking up a token.
type known struct {
	who     *Identity
	expires time.Time
	err     error
	at      time.Time // when the store answered
	rest    time.Time // the store failed, and isn't asked again before this
}

// tokens caches the tokens in use.
type tokens struct {
	mu     sync.Mutex
	looked map[[sha256.Size]byte]known
	change int                  // counts the changes made by this process; a lookup that began before a change isn't cached
	used   map[string]time.Time // last use by id, not yet saved
}

// maxLooked bounds the cache, which holds invalid tokens as well.
const maxLooked = 10_000

// Verify returns the identity of a token. The error is [ErrNoToken], an [*ExpiredError], the context's or the store's.
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
	n.log.WarnContext(ctx, "the store can't be asked about a token; it was valid, and stays so for token_grace", "token", id, "error", err)
	n.tokens.use(&k, now)
	return k.who, k.valid(now)
}

// valid returns nil for a token that may be used now.
func (k *known) valid(now time.Time) error {
	if k.err == nil && !k.expires.IsZero() && !now.Before(k.expires) {
		return &ExpiredError{k.expires}
	}
	return k.err
}

// remembered returns a cached token. If it is still fresh and valid, it counts as used.
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

// use records that a token was used, if it is valid.
func (t *tokens) use(k *known, now time.Time) {
	if k.valid(now) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used[k.who.Token] = now
}

// goOn caches a token that is accepted although the store is unreachable. It returns false if tokens were changed in the
// meantime.
func (t *tokens) goOn(sum [sha256.Size]byte, k known) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.looked[sum]
	if ok {
		t.looked[sum] = k
	}
	return ok
}

// lookUp asks the store. An unknown token isn't an error of lookUp; the result has it.
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

// forgetTokens empties the cache, and has the tokens of requests in progress checked again.
func (n *Node) forgetTokens() {
	defer n.running.recheck()
	n.tokens.mu.Lock()
	defer n.tokens.mu.Unlock()
	clear(n.tokens.looked)
	n.tokens.change++
}

// saveTokenUse saves when tokens were last used. What can't be saved is lost: the next use is saved.
func (n *Node) saveTokenUse(ctx context.Context) error {
	s := n.Conversations()
	n.tokens.mu.Lock()
	used := n.tokens.used
	n.tokens.used = map[string]time.Time{}
	n.tokens.mu.Unlock()
	if s == nil || len(used) == 0 {
		return nil
	}
	return s.TouchTokens(ctx, used)
}
