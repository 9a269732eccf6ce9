package endpoint

import (
	"log/slog"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
)

// openNode returns a node without an engine.
func openNode(t *testing.T) *node.Node {
	t.Helper()
	lock, err := node.Reserve(home.Dir(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	n := lock.Open(slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := n.Push(1, node.Settings{}); err != nil {
		t.Fatal(err)
	}
	return n
}
