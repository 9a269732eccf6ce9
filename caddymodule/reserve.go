package caddymodule

import (
	"sync"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
)

// reserved are the locks that Reserve has taken, by the home, until an app takes them over.
var reserved sync.Map

// Reserve locks a home, by its real path, before Caddy runs. The app that opens the home takes the lock over. A home that
// another process uses is an error that names it.
func Reserve(dir home.Dir) error {
	lock, err := takeLock(dir)
	if err == nil {
		reserved.Store(dir, lock)
	}
	return err
}

// takeLock returns the lock on a home: the one that Reserve took, or a new one.
func takeLock(dir home.Dir) (*node.Lock, error) {
	if lock, ok := reserved.LoadAndDelete(dir); ok {
		return lock.(*node.Lock), nil
	}
	return node.Reserve(dir)
}
