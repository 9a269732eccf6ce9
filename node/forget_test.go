package node

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/warm"
	"github.com/lmcaddy/lmcaddy/warm/warmtest"
)

// keptBefore puts states into a home without a server, some time ago.
func keptBefore(t *testing.T, dir home.Dir, ago time.Duration, states ...prefix.State) {
	t.Helper()
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	s, err := warm.Open(dir.Warm(), nil, warm.WithClock(func() time.Time { return time.Now().Add(-ago) }))
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range states {
		warmtest.Keep(t, s, "a/b", st)
	}
	s.Close()
}

// wantKept checks whose states are left: those of owners, or of conversations of nobody in particular.
func wantKept(t *testing.T, n *Node, when string, want ...string) {
	t.Helper()
	var kept []string
	for _, s := range n.Warm.List() {
		kept = append(kept, s.Owner+s.Conversation)
	}
	slices.Sort(kept)
	slices.Sort(want)
	if !slices.Equal(kept, want) {
		t.Errorf("%s: states of %q are kept, want %q", when, kept, want)
	}
}

// put stores a turn that continues another, or none.
func put(t *testing.T, n *Node, id, parent string) *store.Turn {
	t.Helper()
	turn := &store.Turn{ID: id, Parent: parent, Status: store.Completed}
	if err := n.Stores.Get().Put(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	return turn
}

func TestForget_ConversationsOfDeletedTurns(t *testing.T) {
	t.Parallel()
	n := open(t, home.Dir(t.TempDir()))
	push(t, n, 1, Settings{})
	put(t, n, "first", "")
	last := put(t, n, "last", "first")
	put(t, n, "other", "")
	warmtest.Keep(t, n.Warm, "a/b", prefix.State{Conversation: "first"})
	warmtest.Keep(t, n.Warm, "a/b", prefix.State{Conversation: "other"})
	warmtest.Keep(t, n.Warm, "a/b", prefix.State{Owner: "stateless"})
	if err := n.Stores.DeleteTurn(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	wantKept(t, n, "a turn was deleted", "other", "stateless")
	if err := n.Stores.DeleteTurn(t.Context(), last); err == nil {
		t.Error("it was deleted twice")
	}
	push(t, n, 2, Settings{Store: StoreSettings{Bounds: store.Bounds{Age: time.Nanosecond}}})
	testkit.Eventually(t, "old conversations are removed", func() bool {
		_, err := n.Stores.Get().Get(t.Context(), "", "other")
		_, gone := errors.AsType[*store.NotFound](err)
		return gone && len(n.Warm.List()) < 2
	})
	wantKept(t, n, "a conversation was pruned", "stateless")
}

func TestForget_RevokedTokens(t *testing.T) {
	t.Parallel()
	n := open(t, home.Dir(t.TempDir()))
	push(t, n, 1, Settings{})
	_, revoked := newToken(t, n)
	_, other := newToken(t, n)
	warmtest.Keep(t, n.Warm, "a/b", prefix.State{Owner: revoked.ID})
	warmtest.Keep(t, n.Warm, "a/b", prefix.State{Owner: other.ID})
	if err := n.Access.Tokens.Revoke(t.Context(), revoked.ID); err != nil {
		t.Fatal(err)
	}
	wantKept(t, n, "a token was revoked", other.ID)
}

func TestForget_RemovedModels(t *testing.T) {
	t.Parallel()
	dir := withModel(t)
	n := open(t, dir)
	push(t, n, 1, Settings{})
	const key = "lmcaddy/tinychat"
	warmtest.Keep(t, n.Warm, key, prefix.State{Owner: "x"})
	warmtest.Keep(t, n.Warm, "a/b", prefix.State{Owner: "y"})
	if _, err := n.Downloads.Remove(t.Context(), key, anyone); err != nil {
		t.Fatal(err)
	}
	wantKept(t, n, "the model was removed", "y")
}

// What was deleted while no server ran, or by another server, is found.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := home.Dir(t.TempDir())
	first := open(t, dir)
	push(t, first, 1, Settings{})
	_, valid := newToken(t, first)
	_, expired, err := first.Access.Tokens.Create(t.Context(), access.Token{Name: "x", Scopes: access.DefaultScopes, Expires: time.Now().Add(time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	put(t, first, "stored", "")
	put(t, first, "next", "stored")
	if err := first.Stores.Get().Delete(t.Context(), "", "stored"); err != nil { // hidden, but continued
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	keptBefore(t, dir, 2*sweepAge,
		prefix.State{Owner: "Gone4711"}, prefix.State{Owner: valid.ID}, prefix.State{Owner: expired.ID}, prefix.State{Owner: "user:ann"}, prefix.State{},
		prefix.State{Conversation: "deleted"}, prefix.State{Conversation: "stored"})
	keptBefore(t, dir, 0, prefix.State{Conversation: "not stored yet"})

	n := open(t, dir)
	push(t, n, 1, Settings{})
	left := []string{valid.ID, "user:ann", "", "stored", "not stored yet"}
	testkit.Eventually(t, "what is left over is deleted", func() bool {
		n.Stores.sweep()
		return len(n.Warm.List()) == len(left)
	})
	wantKept(t, n, "after a sweep", left...)
}

// The store of states is told what the settings say, at once and after a reload.
func TestWarm_SettingsAreEnforced(t *testing.T) {
	t.Parallel()
	dir := withModel(t)
	n := open(t, dir)
	push(t, n, 1, Settings{})
	for _, model := range []string{"lmcaddy/tinychat", "a/b"} {
		warmtest.Keep(t, n.Warm, model, prefix.State{Owner: model})
	}
	push(t, n, 2, Settings{Models: map[string]ModelSettings{"tinychat": {Warm: new(false)}}})
	testkit.Eventually(t, "the model's states are deleted", func() bool { return len(n.Warm.List()) < 2 })
	wantKept(t, n, "warm off of a model", "a/b")
	push(t, n, 3, Settings{Warm: WarmSettings{Settings: warm.Settings{Off: true}}})
	wantKept(t, n, "warm off")
	if _, err := n.Warm.Shelf(warm.Print{}); !errors.Is(err, warm.ErrOff) {
		t.Errorf("with warm off: %v", err)
	}
}
