package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/warm"
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

// WithWarmOf opens a home's saved states of prompts, with the home locked, and calls do with them. The errors are those of
// [WithStoreOf].
func WithWarmOf(dir home.Dir, log *slog.Logger, do func(*warm.Store) error) (err error) {
	lock, err := Reserve(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	s, err := warm.Open(dir.Warm(), log)
	if err != nil {
		return err
	}
	defer s.Close()
	return do(s)
}
