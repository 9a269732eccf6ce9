package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

// A change of this process ends what runs for a token at once, one of another server within a second.
func TestFollow_EndsSoon(t *testing.T) {
	t.Parallel()
	const life = 10*recheckEvery + recheckEvery/2 // until it expires
	for name, tt := range map[string]struct {
		change func(ctx context.Context, n *Node, made Token) error
		most   time.Duration
	}{
		"revoked":  {func(ctx context.Context, n *Node, made Token) error { return n.RevokeToken(ctx, made.ID) }, 0},
		"narrowed": {narrow, 0},
		"by another": {func(ctx context.Context, n *Node, made Token) error {
			return n.Conversations().DeleteToken(ctx, made.ID)
		}, recheckEvery},
		"narrowed, by another": {narrowElsewhere, recheckEvery},
		"it expires by itself": {func(context.Context, *Node, Token) error { return nil }, life + recheckEvery},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := open(t, home.Dir(t.TempDir()))
				push(t, n, 1, Settings{})
				_, made, err := n.CreateToken(t.Context(), Token{Name: "x", Scopes: DefaultScopes, Expires: time.Now().Add(time.Hour)})
				if err != nil {
					t.Fatal(err)
				}
				ctx, running := n.Follow(t.Context(), &Identity{Token: made.ID, Scopes: made.Scopes}, ScopeInference)
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
				if took := time.Since(began); took > tt.most || Ended(ctx) == nil {
					t.Errorf("it ended after %v, by %v", took, context.Cause(ctx))
				}
				if <-left.Done(); Ended(left) == nil {
					t.Errorf("what it left behind was ended by %v", context.Cause(left))
				}
			})
		})
	}
}

func narrow(ctx context.Context, n *Node, made Token) error {
	made.Models = []string{"c/*"}
	_, err := n.UpdateToken(ctx, made)
	return err
}

func narrowElsewhere(ctx context.Context, n *Node, made Token) error {
	made.Models = []string{"c/*"}
	_, err := UpdateToken(ctx, n.Conversations(), made)
	return err
}
