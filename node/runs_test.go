package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
)

// newTurn is the beginning of a turn.
func newTurn(id string) *store.Turn {
	return &store.Turn{ID: id, Owner: "ada", Model: "a/b", Status: store.InProgress}
}

// A run whose turn another server has deleted or cancelled ends soon, and stays as that one left it.
func TestStartRun_EndsWithItsTurn(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context, *store.Store) error{
		"deleted": func(ctx context.Context, s *store.Store) error { return s.Delete(ctx, "ada", "resp_1") },
		"cancelled": func(ctx context.Context, s *store.Store) error {
			turn := newTurn("resp_1")
			turn.Status = store.Cancelled
			return s.Finish(ctx, turn)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := open(t, home.Dir(t.TempDir()))
				push(t, n, 1, Settings{})
				var cause, failure error
				r, err := n.Runs.Start(t.Context(), newTurn("resp_1"), func(ctx context.Context, r *runs.Run) {
					<-ctx.Done()
					cause = context.Cause(ctx)
					turn := newTurn("resp_1")
					turn.Status = store.Failed
					failure = r.Finish(context.WithoutCancel(ctx), turn)
				})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * runs.RenewEvery)
				if r.HasEnded() {
					t.Fatalf("it ended by itself: %v", cause)
				}
				if err := end(t.Context(), n.Stores.Get()); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				<-r.Done()
				if took := time.Since(begun); took > runs.RenewEvery || !errors.Is(cause, runs.ErrCancelled) || failure != nil {
					t.Errorf("it ended after %v, by %v, %v", took, cause, failure)
				}
				if turn, err := n.Stores.Get().Get(t.Context(), "ada", "resp_1"); err == nil && turn.Status != store.Cancelled {
					t.Errorf("it is %s now", turn.Status)
				}
			})
		})
	}
}

// What the server was making when it crashed has failed when it starts again.
func TestOpen_FailsWhatACrashLeft(t *testing.T) {
	t.Parallel()
	dir := home.Dir(t.TempDir())
	s, err := store.Open(t.Context(), store.Options{Path: dir.Database()})
	if err == nil {
		err = errors.Join(s.Put(t.Context(), newTurn("resp_1")), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	n := open(t, dir)
	push(t, n, 1, Settings{})
	if turn, err := n.Stores.Get().Get(t.Context(), "ada", "resp_1"); err != nil || turn.Status != store.Failed {
		t.Errorf("%+v, %v", turn, err)
	}
}
