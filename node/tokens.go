package node

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
)

// noteUsedEvery is how often it is written down which tokens were used, and what for.
const noteUsedEvery = 5 * time.Second

// Token is the right to use the server, without the secret.
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

// rights is what a store keeps as a token's rights.
type rights struct {
	Scopes []Scope  `json:"scopes"`
	Models []string `json:"models,omitempty"`
	Limits Limits   `json:"limits,omitzero"`
}

// TokenError says what is wrong with a token that is to be made or changed.
type TokenError struct{ Param, Message string }

func (e *TokenError) Error() string { return e.Message }

// A token is LM Studio's in form: sk-lm-, an id, which is no secret, a colon, and the secret.
const (
	tokenPrefix  = "sk-lm-"
	idLength     = 8
	secretLength = 20
)

// idOf is the id in a token, if it has the form of one.
func idOf(token string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok || len(rest) != idLength+1+secretLength || rest[idLength] != ':' {
		return "", false
	}
	for i := range len(rest) {
		c := rest[i]
		isAlphanumeric := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !isAlphanumeric && i != idLength {
			return "", false
		}
	}
	return rest[:idLength], true
}

func tokenOf(t store.Token) Token {
	var r rights
	_ = json.Unmarshal(t.Rights, &r) // what can't be read gives no rights
	return Token{t.ID, t.Name, r.Scopes, r.Models, r.Limits, t.Created, t.Expires, t.LastUsed}
}

// identity is who has the token.
func (t Token) identity() *Identity {
	return &Identity{Owner: t.ID, Token: t.ID, Name: t.Name, Scopes: t.Scopes, Models: t.Models, Limits: t.Limits}
}

func (t *Token) stored() (store.Token, error) {
	r, err := json.Marshal(rights{t.Scopes, t.Models, t.Limits})
	return store.Token{ID: t.ID, Name: t.Name, Rights: r, Created: t.Created, Expires: t.Expires}, err
}

// CreateToken makes a token, and gives the secret, which is to be had only now. Of t, the id and the times but for Expires
// are chosen here. The error may be a [*TokenError].
func (n *Node) CreateToken(ctx context.Context, t Token) (secret string, _ Token, _ error) {
	return CreateToken(ctx, n.Conversations(), t)
}

// CreateToken makes a token in a store; see [Node.CreateToken].
func CreateToken(ctx context.Context, s *store.Store, t Token) (secret string, _ Token, _ error) {
	t.normalize()
	if err := t.check(); err != nil {
		return "", t, err
	}
	t.ID, t.Created = randomText(idLength), time.Now()
	secret = tokenPrefix + t.ID + ":" + randomText(secretLength)
	sum := sha256.Sum256([]byte(secret))
	stored, err := t.stored()
	if err != nil {
		return "", t, err
	}
	stored.Hash = hex.EncodeToString(sum[:])
	return secret, t, s.PutToken(ctx, stored)
}

const (
	alphanumerics = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	maxTokenName  = 200
	lastYear      = 2200 // a store counts nanoseconds in 64 bits
)

// randomText is so many alphanumerics, of 5.95 bits each.
func randomText(n int) string {
	text := make([]byte, 0, n)
	for len(text) < n {
		var b [1]byte
		_, _ = rand.Read(b[:])                      // never fails
		if int(b[0]) < 256-256%len(alphanumerics) { // so that each is as likely
			text = append(text, alphanumerics[int(b[0])%len(alphanumerics)])
		}
	}
	return string(text)
}

// normalize gives scopes an order and models the case of keys.
func (t *Token) normalize() {
	t.Scopes = slices.Clone(t.Scopes)
	slices.Sort(t.Scopes)
	t.Scopes = slices.Compact(t.Scopes)
	t.Models = slices.Clone(t.Models)
	for i, m := range t.Models {
		t.Models[i] = strings.ToLower(strings.TrimSpace(m))
	}
}

func (t *Token) check() error {
	switch l := t.Limits; {
	case strings.TrimSpace(t.Name) == "":
		return &TokenError{"name", "a token needs a name, by which people know what it is for"}
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
			return &TokenError{"models", fmt.Sprintf("%q is no key of a model, nor a pattern of keys", m)}
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

// Tokens lists the tokens, the oldest first.
func (n *Node) Tokens(ctx context.Context) ([]Token, error) { return Tokens(ctx, n.Conversations()) }

// Tokens lists the tokens of a store, the oldest first.
func Tokens(ctx context.Context, s *store.Store) ([]Token, error) {
	stored, err := s.Tokens(ctx)
	all := make([]Token, len(stored))
	for i, t := range stored {
		all[i] = tokenOf(t)
	}
	return all, err
}

// TokenByID gives a token. *[store.NotFound] is that there is none.
func (n *Node) TokenByID(ctx context.Context, id string) (Token, error) {
	return TokenByID(ctx, n.Conversations(), id)
}

// TokenByID gives a token of a store; see [Node.TokenByID].
func TokenByID(ctx context.Context, s *store.Store, id string) (Token, error) {
	t, err := s.Token(ctx, id)
	return tokenOf(t), err
}

// UpdateToken changes a token's name, rights and expiry, at once, and gives what became of it. The error may be a
// [*TokenError] or a [*store.NotFound].
func (n *Node) UpdateToken(ctx context.Context, t Token) (Token, error) {
	defer n.forgetTokens()
	return UpdateToken(ctx, n.Conversations(), t)
}

// UpdateToken changes a token in a store; see [Node.UpdateToken].
func UpdateToken(ctx context.Context, s *store.Store, t Token) (Token, error) {
	t.normalize()
	if err := t.check(); err != nil {
		return t, err
	}
	stored, err := t.stored()
	if err != nil {
		return t, err
	}
	return t, s.UpdateToken(ctx, stored)
}

// RevokeToken ends a token, at once. *[store.NotFound] is that there is none.
func (n *Node) RevokeToken(ctx context.Context, id string) error {
	defer n.forgetTokens()
	return n.Conversations().DeleteToken(ctx, id)
}
