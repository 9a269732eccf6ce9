package store

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/histogram"
)

// Latency has how long reads and writes took, in seconds, and how many of them failed because of the database. The time of a
// write ends with the commit of its transaction, and includes the wait for others.
type Latency struct {
	Reads, Writes             histogram.Histogram
	FailedReads, FailedWrites uint64
}

// NewLatency returns an empty Latency.
func NewLatency() Latency {
	return Latency{Reads: histogram.New(histogram.Queries), Writes: histogram.New(histogram.Queries)}
}

// Add adds what another store took.
func (l *Latency) Add(o Latency) {
	l.Reads.Add(o.Reads)
	l.Writes.Add(o.Writes)
	l.FailedReads += o.FailedReads
	l.FailedWrites += o.FailedWrites
}

// failureFor is how long [Store.Ping] reports a failure after the database works again: some connections or pages may not.
const failureFor = 5 * time.Second

// failure is a failure of the database, as an operation met it.
type failure struct {
	err error
	at  time.Time
}

// health is how the operations of a store have gone.
type health struct {
	failureFor time.Duration

	mu      sync.Mutex
	latency Latency
	last    *failure // that an operation met; nil: none since Ping has last returned nil
}

// observe counts an operation that began at a time, and remembers a failure of the database.
func (h *health) observe(isWrite bool, begun time.Time, err error) {
	h.count(isWrite, begun, err)
	if errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) || errors.Is(err, ErrBusy) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.last = &failure{err, time.Now()}
	}
}

func (h *health) count(isWrite bool, begun time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	times, failed := &h.latency.Reads, &h.latency.FailedReads
	if isWrite {
		times, failed = &h.latency.Writes, &h.latency.FailedWrites
	}
	times.ObserveTime(time.Since(begun))
	if err != nil && !isRefusal(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
		*failed++
	}
}

// Latency returns how long the store took so far.
func (s *connection) Latency() Latency {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	l := s.health.latency
	l.Reads, l.Writes = l.Reads.Clone(), l.Writes.Clone()
	return l
}

// Ping returns why the database can't be used, also if it can only be read. It writes only if an operation has failed since it last
// returned nil.
func (s *connection) Ping(ctx context.Context) error {
	if s.writer.isClosed() {
		return ErrClosed
	}
	begun, err := time.Now(), s.db.ping(ctx)
	s.health.count(false, begun, err)
	s.health.mu.Lock()
	last := s.health.last
	s.health.mu.Unlock()
	if err != nil || last == nil {
		return err
	}
	switch err := s.write(ctx, len(sampleHash), writeSample); {
	case err != nil && ctx.Err() == nil:
		return err
	case err != nil, time.Since(last.at) < s.health.failureFor:
		return last.err
	}
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	if s.health.last == last {
		s.health.last = nil
	}
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
