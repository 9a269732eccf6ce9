package caddymodule

import (
	"log/slog"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
)

// Of two servers that start at once, the one that comes first keeps the other out, before either has begun.
func TestReserve_KeepsTheHome(t *testing.T) {
	t.Parallel()
	dir, err := home.Dir(t.TempDir()).Real()
	if err != nil {
		t.Fatal(err)
	}
	if err := Reserve(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Reserve(dir); err == nil {
		t.Error("another server may begin on the home")
	}
	lock, err := takeLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Open(slog.New(slog.DiscardHandler)).Close(); err != nil {
		t.Error(err)
	}
	if lock, err = node.Reserve(dir); err != nil || lock.Release() != nil {
		t.Errorf("the home isn't free again: %v", err)
	}
}
