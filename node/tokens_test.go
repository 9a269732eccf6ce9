package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
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

// newToken makes a token of a node with the default scopes.
func newToken(t *testing.T, n *Node) (secret string, _ Token) {
	t.Helper()
	secret, made, err := n.CreateToken(t.Context(), Token{Name: "x", Scopes: DefaultScopes})
	if err != nil {
		t.Fatal(err)
	}
	return secret, made
}

func TestTokens_OnlyTheHashIsStored(t *testing.T) {
	t.Parallel()
	n := open(t, home.Dir(t.TempDir()))
	push(t, n, 1, Settings{})
	secret, made := newToken(t, n)
	if id, ok := idOf(secret); !ok || id != made.ID || !strings.HasPrefix(secret, "sk-lm-"+made.ID+":") {
		t.Errorf("its form: %s", secret)
	}
	stored, err := n.Conversations().Token(t.Context(), made.ID)
	if err != nil || len(stored.Hash) != 64 || strings.Contains(stored.Hash+string(stored.Rights)+stored.Name, secret[15:]) {
		t.Errorf("%+v, %v", stored, err)
	}
	who, err := n.Verify(t.Context(), secret)
	want := &Identity{Owner: made.ID, Token: made.ID, Name: "x", Scopes: made.Scopes}
	if diff := cmp.Diff(want, who); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, wrong := range []string{
		"", secret[:len(secret)-1], secret + "x", strings.ToLower(secret), "sk-lm-" + made.ID + ":" + strings.Repeat("a", 20), " " + secret, secret + "\n",
		"sk-lm-" + made.ID + ":" + stored.Hash[:20], stored.Hash,
	} {
		if _, err := n.Verify(t.Context(), wrong); !errors.Is(err, ErrNoToken) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// Two nodes on one store, as two machines on one PostgreSQL: what the one revokes, the other forgets within a second.
func TestTokens_OfAnotherNodeAreForgottenSoon(t *testing.T) {
	t.Parallel()
	n := open(t, home.Dir(t.TempDir()))
	push(t, n, 1, Settings{})
	secret, made := newToken(t, n)
	if _, err := n.Verify(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := n.Conversations().DeleteToken(t.Context(), made.ID); err != nil { // behind the node's back
		t.Fatal(err)
	}
	began := time.Now()
	for {
		_, err := n.Verify(t.Context(), secret)
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
	n := open(t, home.Dir(t.TempDir()))
	push(t, n, 1, Settings{})
	for range 50 {
		secret, made := newToken(t, n)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = n.Verify(t.Context(), secret)
		}()
		if err := n.RevokeToken(t.Context(), made.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Verify(t.Context(), secret); !errors.Is(err, ErrNoToken) {
			t.Fatalf("revoked, but: %v", err)
		}
		<-done
		if _, err := n.Verify(t.Context(), secret); !errors.Is(err, ErrNoToken) {
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
			n := open(t, home.Dir(t.TempDir()))
			push(t, n, 1, Settings{Store: StoreSettings{TokenGrace: tt.grace}})
			secret, made := newToken(t, n)
			other, _ := newToken(t, n)
			if _, err := n.Verify(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			if tt.revoked {
				if err := n.RevokeToken(t.Context(), made.ID); err != nil {
					t.Fatal(err)
				}
			}
			if err := n.Conversations().Close(); err != nil {
				t.Fatal(err)
			}
			n.tokens.mu.Lock()
			for sum, k := range n.tokens.looked {
				k.at = k.at.Add(-tt.ago)
				if tt.expires != 0 {
					k.expires = time.Now().Add(tt.expires)
				}
				n.tokens.looked[sum] = k
			}
			n.tokens.mu.Unlock()
			for range 2 { // the second time without asking
				who, err := n.Verify(t.Context(), secret)
				if (err == nil) != tt.want || tt.want && who.Token != made.ID {
					t.Errorf("%+v, %v", who, err)
				}
			}
			if _, err := n.Verify(t.Context(), other); err == nil {
				t.Error("a token that was never seen is valid")
			}
		})
	}
}

func TestTokens_WithoutAServer(t *testing.T) {
	t.Parallel()
	dir := home.Dir(t.TempDir())
	var secret string
	err := WithStoreOf(t.Context(), dir, func(s *store.Store) (err error) {
		secret, _, err = CreateToken(t.Context(), s, Token{Name: "first", Scopes: DefaultScopes})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := open(t, dir)
	push(t, n, 1, Settings{})
	if _, err := n.Verify(t.Context(), secret); err != nil {
		t.Error(err)
	}
	err = WithStoreOf(t.Context(), dir, func(*store.Store) error { t.Error("at the same time as a server"); return nil })
	if err == nil || !strings.Contains(err.Error(), "in use by another lmcaddy") {
		t.Error(err)
	}
}

func TestUsage_IsWrittenDownAndLimitsRememberIt(t *testing.T) {
	t.Parallel()
	dir := home.Dir(t.TempDir())
	who := &Identity{Owner: "someone", Limits: Limits{TokensPerDay: 100}}
	for i, want := range []bool{true, true, false} { // each time a new process
		n := reserve(t, dir).Open(slog.New(slog.DiscardHandler))
		push(t, n, 1, Settings{})
		done, err := n.Admit(context.Background(), who)
		if (err == nil) != want {
			t.Errorf("%d: %v", i, err)
		}
		if err == nil {
			n.Used(who, "a/b", translate.Usage{Prompt: 40, Completion: 10})
			done()
			done() // once is enough
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	n := open(t, dir)
	push(t, n, 1, Settings{})
	used, err := n.Record().Usage.Daily(t.Context(), &who.Owner, time.Now().Add(-24*time.Hour), time.Now())
	var sum int64
	for _, u := range used {
		sum += u.TokensIn + u.TokensOut
	}
	if err != nil || sum != 100 {
		t.Errorf("%v, %v", used, err)
	}
}

// TestUsage_IsCompleteForEveryReader: what one reader is saving, the others see, too, and so does a limit.
func TestUsage_IsCompleteForEveryReader(t *testing.T) {
	t.Parallel()
	n := open(t, home.Dir(t.TempDir()))
	push(t, n, 1, Settings{})
	for i := range 50 {
		who := &Identity{Owner: fmt.Sprint("owner ", i), Limits: Limits{TokensPerDay: 50}}
		n.Used(who, "a/b", translate.Usage{Prompt: 40, Completion: 10})
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				used, err := n.Record().Usage.Daily(t.Context(), &who.Owner, time.Now().Add(-24*time.Hour), time.Now())
				if err != nil || len(used) != 1 {
					t.Errorf("%v, %v", used, err)
				}
			})
		}
		readers.Go(func() {
			if _, err := n.Admit(t.Context(), who); err == nil {
				t.Error("a request is admitted whose limit is reached")
			}
		})
		readers.Wait()
	}
}
