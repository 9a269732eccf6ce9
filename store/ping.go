package store

import (
	"context"
	"crypto/rand"
	"errors"
	"time"
)

// troubleKept is how long a failure is told by [Store.Ping], although the database works again: some connections or pages may not.
const troubleKept = 5 * time.Second

// trouble is a failure of the database, as an operation met it.
type trouble struct {
	err error
	at  time.Time
}

// note notes the database's failures.
func (s *Store) note(err error) {
	if errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) || errors.Is(err, ErrBusy) {
		s.trouble.Store(&trouble{err, time.Now()})
	}
}

// Ping returns why the database can't be used, also if it can only be read. It writes only if an operation has failed since it last
// returned nil.
func (s *Store) Ping(ctx context.Context) error {
	if s.isClosed() {
		return ErrClosed
	}
	begun, err := time.Now(), s.db.ping(ctx)
	s.latency.read(begun, err)
	if err != nil {
		return err
	}
	last := s.trouble.Load()
	if last == nil {
		return nil
	}
	switch err := s.write(ctx, len(sampleHash), writeSample); {
	case err != nil && ctx.Err() == nil:
		return err
	case err != nil, time.Since(last.at) < s.troubleKept:
		return last.err
	}
	s.trouble.CompareAndSwap(last, nil)
	return nil
}

const (
	insertSample = `INSERT INTO blobs (hash, refs, data) VALUES ($1, 0, $2)`
	deleteSample = `DELETE FROM blobs WHERE hash = $1`
	sampleBytes  = 64 << 10 // more than there is room for in the pages of a database on a full disk
	// sampleHash begins the hash of a sample, so that it isn't that of an image.
	sampleHash = "sample-"
)

// writeSample writes and deletes as much as an answer may have.
func writeSample(t *tx) error {
	data := make([]byte, sampleBytes)
	_, _ = rand.Read(data) // never fails
	hash := sampleHash + rand.Text()
	if _, err := t.exec(insertSample, hash, data); err != nil {
		return err
	}
	_, err := t.exec(deleteSample, hash)
	return err
}
