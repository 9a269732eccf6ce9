package access

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/store"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		models []string
		key    string
		want   bool
	}{
		"no list":        {nil, "a/b", true},
		"exact":          {[]string{"a/b"}, "a/b", true},
		"another":        {[]string{"a/b"}, "a/bc", false},
		"its quant":      {[]string{"a/b"}, "a/b@q4", true},
		"another quant":  {[]string{"a/b@q4"}, "a/b@q8", false},
		"pattern":        {[]string{"x/y", "a/*"}, "a/b@q4", true},
		"one level":      {[]string{"*"}, "a/b", true},
		"not over slash": {[]string{"a*"}, "a/b", false},
	} {
		who := &Identity{Models: tt.models}
		if who.MayUse(tt.key) != tt.want {
			t.Errorf("%s: %v", name, !tt.want)
		}
	}
	var anybody *Identity
	if !anybody.May(ScopeInference) || !anybody.MayUse("a/b") || Nobody.May(ScopeModelsRead) || !Nobody.May("") || !Local.May(ScopeAdmin) {
		t.Error("anybody, nobody or who is local")
	}
	if admin := (&Identity{Scopes: []Scope{ScopeAdmin}}); !admin.May(ScopeMCPPlugin) {
		t.Error("admin has no other scope in it")
	}
}

// newAccess returns the Access of a server with a store of its own.
func newAccess(t *testing.T, grace time.Duration) (*Access, *store.Store) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "store.db"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	inUse := func() *store.Store { return s }
	return New(Options{
		Log: log, Store: inUse, Usage: record.New(inUse).Usage, Grace: func() time.Duration { return grace }, Revoked: func(string) {},
		IsClustered: func() bool { return false },
	}), s
}

// newToken makes a token with the default scopes.
func newToken(t *testing.T, a *Access) (secret string, _ Token) {
	t.Helper()
	secret, made, err := a.Tokens.Create(t.Context(), Token{Name: "x", Scopes: DefaultScopes})
	if err != nil {
		t.Fatal(err)
	}
	return secret, made
}

func TestTokens_OnlyTheHashIsStored(t *testing.T) {
	t.Parallel()
	a, s := newAccess(t, 0)
	secret, made := newToken(t, a)
	if id, ok := idOf(secret); !ok || id != made.ID || !strings.HasPrefix(secret, "sk-lm-"+made.ID+":") {
		t.Errorf("its form: %s", secret)
	}
	stored, err := s.Token(t.Context(), made.ID)
	if err != nil || len(stored.Hash) != 64 || strings.Contains(stored.Hash+string(stored.Rights)+stored.Name, secret[15:]) {
		t.Errorf("%+v, %v", stored, err)
	}
	who, err := a.Tokens.Verify(t.Context(), secret)
	want := &Identity{Owner: made.ID, Token: made.ID, Name: "x", Scopes: made.Scopes}
	if diff := cmp.Diff(want, who); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, wrong := range []string{
		"", secret[:len(secret)-1], secret + "x", strings.ToLower(secret), "sk-lm-" + made.ID + ":" + strings.Repeat("a", 20), " " + secret, secret + "\n",
		"sk-lm-" + made.ID + ":" + stored.Hash[:20], stored.Hash,
	} {
		if _, err := a.Tokens.Verify(t.Context(), wrong); !errors.Is(err, ErrNoToken) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// Two nodes on one store, as two machines on one PostgreSQL: what the one revokes, the other forgets within a second.
func TestTokens_OfAnotherNodeAreForgottenSoon(t *testing.T) {
	t.Parallel()
	a, s := newAccess(t, 0)
	secret, made := newToken(t, a)
	if _, err := a.Tokens.Verify(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteToken(t.Context(), made.ID); err != nil { // behind the server's back
		t.Fatal(err)
	}
	began := time.Now()
	for {
		_, err := a.Tokens.Verify(t.Context(), secret)
		if errors.Is(err, ErrNoToken) {
			break
		}
		if err != nil || time.Since(began) > 30*time.Second {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
		time.Sleep(time.Millisecond)
	}
	if tokenFresh >= time.Second {
		t.Errorf("a token is believed for %s", tokenFresh)
	}
}

// A token that was looked up while it was revoked must not be remembered behind the revocation.
func TestTokens_ALookUpThatARevocationOvertakes(t *testing.T) {
	t.Parallel()
	a, _ := newAccess(t, 0)
	for range 50 {
		secret, made := newToken(t, a)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = a.Tokens.Verify(t.Context(), secret)
		}()
		if err := a.Tokens.Revoke(t.Context(), made.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Tokens.Verify(t.Context(), secret); !errors.Is(err, ErrNoToken) {
			t.Fatalf("revoked, but: %v", err)
		}
		<-done
		if _, err := a.Tokens.Verify(t.Context(), secret); !errors.Is(err, ErrNoToken) {
			t.Fatalf("revoked, and remembered: %v", err)
		}
	}
}

// TestTokens_WhileTheStoreIsAway: what it has found valid stays so for the grace, and nothing else.
func TestTokens_WhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		grace, ago time.Duration
		expires    time.Duration
		revoked    bool
		want       bool
	}{
		"a minute ago":               {grace: 5 * time.Minute, ago: time.Minute, want: true},
		"too long ago":               {grace: 5 * time.Minute, ago: 6 * time.Minute},
		"no grace":                   {ago: time.Second},
		"expired meanwhile":          {grace: 5 * time.Minute, ago: time.Minute, expires: -time.Second},
		"revoked here, while it was": {grace: 5 * time.Minute, ago: time.Minute, revoked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, s := newAccess(t, tt.grace)
			secret, made := newToken(t, a)
			other, _ := newToken(t, a)
			if _, err := a.Tokens.Verify(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			if tt.revoked {
				if err := a.Tokens.Revoke(t.Context(), made.ID); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			a.Tokens.mu.Lock()
			for sum, k := range a.Tokens.looked {
				k.at = k.at.Add(-tt.ago)
				if tt.expires != 0 {
					k.expires = time.Now().Add(tt.expires)
				}
				a.Tokens.looked[sum] = k
			}
			a.Tokens.mu.Unlock()
			for range 2 { // the second time without asking
				who, err := a.Tokens.Verify(t.Context(), secret)
				if (err == nil) != tt.want || tt.want && who.Token != made.ID {
					t.Errorf("%+v, %v", who, err)
				}
			}
			if _, err := a.Tokens.Verify(t.Context(), other); err == nil {
				t.Error("a token that was never seen is valid")
			}
		})
	}
}
