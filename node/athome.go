package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/store"
)

// WithStoreOf opens a home's own store, with the home locked, and calls do with it. If another process has locked the home,
// the error names it.
func WithStoreOf(ctx context.Context, dir home.Dir, do func(*store.Store) error) (err error) {
	lock, err := Reserve(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	s, err := store.Open(ctx, store.Options{Path: dir.Database()})
	if err != nil {
		return fmt.Errorf("opening the store of tokens: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s)
}
