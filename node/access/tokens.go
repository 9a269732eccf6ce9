package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/store"
)

// tokenFresh is how long a verified token is cached, and a change by another server of the store may go unnoticed.
const tokenFresh = 500 * time.Millisecond

// While the store is unreachable, a verified token is cached for longer (see [Options]).
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

type known struct {
	who     *Identity
	expires time.Time
	err     error
	at      time.Time // when the store answered
	rest    time.Time // the store failed, and isn't asked again before this
}

// Tokens has the tokens of the store in use, of which it caches those that requests have.
type Tokens struct {
	Options
	running *Running

	mu     sync.Mutex
	looked map[[sha256.Size]byte]known
	change int                  // counts the changes made by this process; a lookup that began before a change isn't cached
	used   map[string]time.Time // last use by id, not yet saved
}

const maxLooked = 10_000 // bounds the cache, which holds invalid tokens as well

// Verify returns the identity of a token. The error is [ErrNoToken], an [*ExpiredError], the context's or the store's.
func (t *Tokens) Verify(ctx context.Context, secret string) (*Identity, error) {
	id, ok := idOf(secret)
	if !ok {
		return nil, ErrNoToken
	}
	sum := sha256.Sum256([]byte(secret))
	now := time.Now()
	t.mu.Lock()
	k, ok := t.looked[sum]
	t.mu.Unlock()
	hasGrace := k.who != nil && now.Sub(k.at) <= t.Grace()
	if ok && now.Sub(k.at) <= tokenFresh || hasGrace && now.Before(k.rest) {
		t.use(&k, now)
		return k.who, k.valid(now)
	}
	asking := ctx
	if hasGrace {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(ctx, graceTimeout)
		defer cancel()
	}
	found, err := t.lookUp(asking, id, sum, now)
	switch {
	case err == nil:
		t.use(&found, now)
		return found.who, found.valid(now)
	case !hasGrace || ctx.Err() != nil:
		return nil, err
	}
	k.rest = now.Add(graceRest)
	if !t.extend(sum, k) {
		return nil, err
	}
	t.Log.WarnContext(ctx, "the store can't be asked about a token; it was valid, and stays so for token_grace", "token", id, "error", err)
	t.use(&k, now)
	return k.who, k.valid(now)
}

func (k *known) valid(now time.Time) error {
	if k.err == nil && !k.expires.IsZero() && !now.Before(k.expires) {
		return &ExpiredError{k.expires}
	}
	return k.err
}

func (t *Tokens) use(k *known, now time.Time) {
	if k.valid(now) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.used[k.who.Token] = now
}

// extend caches a token that is accepted although the store is unreachable; false: tokens were changed in the meantime.
func (t *Tokens) extend(sum [sha256.Size]byte, k known) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.looked[sum]
	if ok {
		t.looked[sum] = k
	}
	return ok
}

// lookUp asks the store. An unknown token isn't an error of lookUp; the result has it.
func (t *Tokens) lookUp(ctx context.Context, id string, sum [sha256.Size]byte, now time.Time) (known, error) {
	k := known{at: now, err: ErrNoToken}
	t.mu.Lock()
	change := t.change
	t.mu.Unlock()
	stored, err := t.Store().Token(ctx, id)
	var missing *store.NotFound
	switch {
	case errors.As(err, &missing):
	case err != nil:
		return k, err
	default:
		hash, err := hex.DecodeString(stored.Hash)
		if err == nil && subtle.ConstantTimeCompare(hash, sum[:]) == 1 {
			found := tokenOf(stored)
			k.who, k.expires, k.err = found.Identity(), found.Expires, nil
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.looked) >= maxLooked {
		clear(t.looked)
	}
	if t.change == change {
		t.looked[sum] = k
	}
	return k, nil
}

// forget empties the cache, and has the tokens of requests in progress checked again.
func (t *Tokens) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.looked)
	t.change++
	select {
	case t.running.again <- struct{}{}:
	default: // already requested
	}
}

// SaveUse saves when tokens were last used. What can't be saved is lost: the next use is saved.
func (t *Tokens) SaveUse(ctx context.Context) error {
	s := t.Store()
	t.mu.Lock()
	used := t.used
	t.used = map[string]time.Time{}
	t.mu.Unlock()
	if s == nil || len(used) == 0 {
		return nil
	}
	return s.TouchTokens(ctx, used)
}

// Create creates a token with a new ID, and returns its secret, once for all. The error may be a [*TokenError].
func (t *Tokens) Create(ctx context.Context, made Token) (secret string, _ Token, _ error) {
	made.ID, made.Created = randomText(idLength), time.Now()
	secret = tokenPrefix + made.ID + ":" + randomText(secretLength)
	sum := sha256.Sum256([]byte(secret))
	stored, err := made.stored()
	if err != nil {
		return "", made, err
	}
	stored.Hash = hex.EncodeToString(sum[:])
	return secret, made, t.Store().PutToken(ctx, stored)
}

// List returns the tokens, oldest first.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	_ = t.SaveUse(ctx) // so that LastUsed is up to date
	stored, err := t.Store().Tokens(ctx)
	all := make([]Token, len(stored))
	for i, s := range stored {
		all[i] = tokenOf(s)
	}
	return all, err
}

// Get returns the token with an id. The error is a [*store.NotFound] if there is none.
func (t *Tokens) Get(ctx context.Context, id string) (Token, error) {
	_ = t.SaveUse(ctx)
	stored, err := t.Store().Token(ctx, id)
	return tokenOf(stored), err
}

// Update changes a token's name, rights and expiry, with immediate effect. The error may be a [*TokenError] or a [*store.NotFound].
func (t *Tokens) Update(ctx context.Context, changed Token) (Token, error) {
	defer t.forget()
	stored, err := changed.stored()
	if err == nil {
		err = t.Store().UpdateToken(ctx, stored)
	}
	return changed, err
}

// Revoke revokes a token, with immediate effect. The error is a [*store.NotFound] if there is none.
func (t *Tokens) Revoke(ctx context.Context, id string) error {
	defer t.forget()
	err := t.Store().DeleteToken(ctx, id)
	if err == nil {
		t.Revoked(id)
	}
	return err
}

// Token is an API token, without its secret.
type Token struct {
	ID       string
	Name     string
	Scopes   []Scope
	Models   []string // see [Identity]
	Limits   Limits
	Created  time.Time
	Expires  time.Time // zero: never
	LastUsed time.Time // zero: never
}

type rights struct {
	Scopes []Scope  `json:"scopes"`
	Models []string `json:"models,omitempty"`
	Limits Limits   `json:"limits,omitzero"`
}

// TokenError is returned for invalid properties of a token that is to be created or changed.
type TokenError struct{ Param, Message string }

func (e *TokenError) Error() string { return e.Message }

// A token has LM Studio's format: sk-lm-, a public id, a colon, and the secret.
const (
	tokenPrefix  = "sk-lm-"
	idLength     = 8
	secretLength = 20
)

func idOf(token string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok || len(rest) != idLength+1+secretLength || rest[idLength] != ':' {
		return "", false
	}
	return rest[:idLength], isAlphanumeric(rest[:idLength]) && isAlphanumeric(rest[idLength+1:])
}

// IsTokenID reports whether an owner is a token. Users of other authentications have a colon in their names.
func IsTokenID(owner string) bool { return len(owner) == idLength && isAlphanumeric(owner) }

func isAlphanumeric(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(alphanumerics, r) })
}

func tokenOf(t store.Token) Token {
	var r rights
	_ = json.Unmarshal(t.Rights, &r) // invalid JSON grants nothing
	return Token{t.ID, t.Name, r.Scopes, r.Models, r.Limits, t.Created, t.Expires, t.LastUsed}
}

// Identity returns the identity of requests with the token.
func (t Token) Identity() *Identity {
	return &Identity{Owner: t.ID, Token: t.ID, Name: t.Name, Scopes: t.Scopes, Models: t.Models, Limits: t.Limits}
}

// stored checks a token and returns it as it is stored: its scopes sorted, and its models as keys are. The error may be a [*TokenError].
func (t *Token) stored() (store.Token, error) {
	t.Scopes = slices.Compact(slices.Sorted(slices.Values(t.Scopes)))
	t.Models = slices.Clone(t.Models)
	for i, m := range t.Models {
		t.Models[i] = catalog.Normal(m)
	}
	if err := t.check(); err != nil {
		return store.Token{}, err
	}
	r, err := json.Marshal(rights{t.Scopes, t.Models, t.Limits})
	return store.Token{ID: t.ID, Name: t.Name, Rights: r, Created: t.Created, Expires: t.Expires}, err
}

const (
	alphanumerics = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	maxTokenName  = 200
	lastYear      = 2200 // a store counts nanoseconds in 64 bits
)

// randomText returns n random alphanumerics, of 5.95 bits each.
func randomText(n int) string {
	text := make([]byte, 0, n)
	for len(text) < n {
		var b [1]byte
		_, _ = rand.Read(b[:])                      // never fails
		if int(b[0]) < 256-256%len(alphanumerics) { // a larger byte would favor some characters
			text = append(text, alphanumerics[int(b[0])%len(alphanumerics)])
		}
	}
	return string(text)
}

func (t *Token) check() error {
	switch l := t.Limits; {
	case strings.TrimSpace(t.Name) == "":
		return &TokenError{"name", "a token needs a name that says what it is for"}
	case len(t.Name) > maxTokenName || strings.ContainsFunc(t.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return &TokenError{"name", fmt.Sprintf("a token's name must have at most %d bytes, and no control characters", maxTokenName)}
	case len(t.Scopes) == 0:
		return &TokenError{"scopes", "a token needs at least one scope: " + scopeNames()}
	case l.RequestsPerMinute < 0 || l.TokensPerDay < 0 || l.Concurrent < 0:
		return &TokenError{"limits", "limits must not be negative"}
	case !t.Expires.IsZero() && !t.Expires.After(time.Now()):
		return &TokenError{"expires_at", "the expiry has already passed"}
	case t.Expires.Year() > lastYear:
		return &TokenError{"expires_at", fmt.Sprintf("the expiry is after the year %d: let the token never expire", lastYear)}
	}
	for _, s := range t.Scopes {
		if !slices.Contains(Scopes, s) {
			return &TokenError{"scopes", fmt.Sprintf("there is no scope %q; there are %s", s, scopeNames())}
		}
	}
	for _, m := range t.Models {
		if _, err := path.Match(m, ""); err != nil || m == "" {
			return &TokenError{"models", fmt.Sprintf("%q is neither a model's key nor a pattern of keys", m)}
		}
	}
	return nil
}

func scopeNames() string {
	names := make([]string, len(Scopes))
	for i, s := range Scopes {
		names[i] = string(s)
	}
	return strings.Join(names, ", ")
}
