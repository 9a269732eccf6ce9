package caddymodule

import (
	"sync"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
)

// reserved holds the locks taken by Reserve, by home, until an app takes them over.
var reserved sync.Map

// Reserve locks a home, by its real path, before Caddy runs. The app that opens the home takes over the lock. If another
// process has locked the home, the error names it.
func Reserve(dir home.Dir) error {
	lock, err := takeLock(dir)
	if err == nil {
		reserved.Store(dir, lock)
	}
	return err
}

// takeLock returns the lock taken by Reserve, or else a new one.
func takeLock(dir home.Dir) (*node.Lock, error) {
	if lock, ok := reserved.LoadAndDelete(dir); ok {
		return lock.(*node.Lock), nil
	}
	return node.Reserve(dir)
}
