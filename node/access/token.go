package access

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/store"
)

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

// idOf returns the id in a token, and whether the token has the right format.
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
