package store

import (
	"context"
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

// latency measures a store.
type latency struct {
	mu sync.Mutex
	Latency
}

// read counts a read, write a write that began at a time.
func (l *latency) read(begun time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Reads.ObserveTime(time.Since(begun))
	if isFailure(err) {
		l.FailedReads++
	}
}

func (l *latency) write(begun time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Writes.ObserveTime(time.Since(begun))
	if isFailure(err) {
		l.FailedWrites++
	}
}

// isFailure reports whether err is the database's fault, and not that of a request.
func isFailure(err error) bool {
	return err != nil && !ours(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed)
}

// Latency returns how long the store took so far.
func (s *Store) Latency() Latency {
	s.latency.mu.Lock()
	defer s.latency.mu.Unlock()
	l := s.latency.Latency
	l.Reads, l.Writes = l.Reads.Clone(), l.Writes.Clone()
	return l
}
