package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// A change of this process ends what runs for a token at once, one of another server within a second.
func TestFollow_EndsSoon(t *testing.T) {
	t.Parallel()
	const life = 10*access.RecheckEvery + access.RecheckEvery/2 // until it expires
	for name, tt := range map[string]struct {
		change func(ctx context.Context, n *Node, made access.Token) error
		most   time.Duration
	}{
		"revoked": {func(ctx context.Context, n *Node, made access.Token) error {
			return n.Access.Tokens.Revoke(ctx, made.ID)
		}, 0},
		"narrowed": {narrow, 0},
		"by another": {func(ctx context.Context, n *Node, made access.Token) error {
			return n.Stores.Get().DeleteToken(ctx, made.ID)
		}, access.RecheckEvery},
		"narrowed, by another": {narrowElsewhere, access.RecheckEvery},
		"it expires by itself": {func(context.Context, *Node, access.Token) error { return nil }, life + access.RecheckEvery},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := open(t, home.Dir(t.TempDir()))
				push(t, n, 1, Settings{})
				_, made, err := n.Access.Tokens.Create(t.Context(), access.Token{Name: "x", Scopes: access.DefaultScopes, Expires: time.Now().Add(time.Hour)})
				if err != nil {
					t.Fatal(err)
				}
				ctx, running := n.Access.Running.Follow(t.Context(), &access.Identity{Token: made.ID, Scopes: made.Scopes}, access.ScopeInference)
				defer running.End()
				running.Uses("a/b")
				left, continued := running.Continue(t.Context())
				defer continued.End()
				time.Sleep(time.Hour - life)
				if ctx.Err() != nil {
					t.Fatalf("it ended by itself: %v", context.Cause(ctx))
				}
				began := time.Now()
				if err := tt.change(t.Context(), n, made); err != nil {
					t.Fatal(err)
				}
				<-ctx.Done()
				if took := time.Since(began); took > tt.most || access.Ended(ctx) == nil {
					t.Errorf("it ended after %v, by %v", took, context.Cause(ctx))
				}
				if <-left.Done(); access.Ended(left) == nil {
					t.Errorf("what it left behind was ended by %v", context.Cause(left))
				}
			})
		})
	}
}

func narrow(ctx context.Context, n *Node, made access.Token) error {
	made.Models = []string{"c/*"}
	_, err := n.Access.Tokens.Update(ctx, made)
	return err
}

func narrowElsewhere(ctx context.Context, n *Node, made access.Token) error {
	made.Models = []string{"c/*"}
	_, err := access.New(access.Options{Store: n.Stores.Get}).Tokens.Update(ctx, made)
	return err
}
