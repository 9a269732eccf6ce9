package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
)

// newToken makes a token of a node with the default scopes.
func newToken(t *testing.T, n *Node) (secret string, _ access.Token) {
	t.Helper()
	secret, made, err := n.Access.Tokens.Create(t.Context(), access.Token{Name: "x", Scopes: access.DefaultScopes})
	if err != nil {
		t.Fatal(err)
	}
	return secret, made
}

func TestTokens_WithoutAServer(t *testing.T) {
	t.Parallel()
	dir := home.Dir(t.TempDir())
	var secret string
	err := WithStoreOf(t.Context(), dir, func(s *store.Store) (err error) {
		secret, _, err = access.New(access.Options{Store: func() *store.Store { return s }}).Tokens.Create(t.Context(), access.Token{Name: "first", Scopes: access.DefaultScopes})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := open(t, dir)
	push(t, n, 1, Settings{})
	if _, err := n.Access.Tokens.Verify(t.Context(), secret); err != nil {
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
	who := &access.Identity{Owner: "someone", Limits: access.Limits{TokensPerDay: 100}}
	for i, want := range []bool{true, true, false} { // each time a new process
		n := reserve(t, dir).Open(slog.New(slog.DiscardHandler))
		push(t, n, 1, Settings{})
		done, err := n.Access.Quota.Admit(context.Background(), who)
		if (err == nil) != want {
			t.Errorf("%d: %v", i, err)
		}
		if err == nil {
			n.Access.Quota.Used(who, "a/b", translate.Usage{Prompt: 40, Completion: 10})
			done()
			done() // once is enough
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	n := open(t, dir)
	push(t, n, 1, Settings{})
	used, err := n.Record.Usage.Daily(t.Context(), &who.Owner, time.Now().Add(-24*time.Hour), time.Now())
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
		who := &access.Identity{Owner: fmt.Sprint("owner ", i), Limits: access.Limits{TokensPerDay: 50}}
		n.Access.Quota.Used(who, "a/b", translate.Usage{Prompt: 40, Completion: 10})
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				used, err := n.Record.Usage.Daily(t.Context(), &who.Owner, time.Now().Add(-24*time.Hour), time.Now())
				if err != nil || len(used) != 1 {
					t.Errorf("%v, %v", used, err)
				}
			})
		}
		readers.Go(func() {
			if _, err := n.Access.Quota.Admit(t.Context(), who); err == nil {
				t.Error("a request is admitted whose limit is reached")
			}
		})
		readers.Wait()
	}
}
