// Package suspects remembers the requests that engines have failed on, so that none of them ends one engine after the other.
package suspects

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	suspectTime = time.Hour // how long a request is remembered that an engine failed on
	maxSuspects = 4096
)

// Suspicion is how likely it is that a request makes engines fail, judged by earlier failures.
type Suspicion uint8

// A request is suspected after an engine was lost while processing it. It is convicted after two have failed in the same way by which a
// request can end them, the last while processing nothing else.
const (
	Unsuspected Suspicion = iota
	Suspected
	Convicted
)

// Evidence is what the loss of an engine says of the requests that it was processing.
type Evidence uint8

// What is no evidence: the silence of an engine, which may only be starved, and its end by another program.
const (
	NoEvidence Evidence = iota
	OfCrash             // it crashed by itself
	OfMemory            // the system killed it for want of memory, which others may have taken
)

// Suspects has the requests that were being processed when an engine failed, by hash. The seed is random, so a client can't
// craft a request with the hash of another. Its methods may be called from any goroutine.
type Suspects struct {
	seed maphash.Seed

	mu    sync.Mutex
	known map[uint64]suspect
}

type suspect struct {
	is   Suspicion
	at   time.Time
	seen [OfMemory + 1]int // how often, by the evidence
}

// New returns no suspects yet.
func New() *Suspects {
	return &Suspects{seed: maphash.MakeSeed(), known: map[uint64]suspect{}}
}

// Of returns the suspicion against a request for a model. It calls body only if there are suspects.
func (s *Suspects) Of(key string, body func() [][]byte) Suspicion {
	s.mu.Lock()
	hasNone := len(s.known) == 0
	s.mu.Unlock()
	if hasNone {
		return Unsuspected
	}
	hash := s.hash(key, body())
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(hash).is
}

// Blame records that a request's engine was lost, and returns the new suspicion. alone means that no other can have been the cause.
func (s *Suspects) Blame(key string, body func() [][]byte, evidence Evidence, alone bool) Suspicion {
	hash := s.hash(key, body())
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.look(hash)
	of.is, of.at = max(of.is, Suspected), time.Now()
	of.seen[evidence]++
	if evidence != NoEvidence && alone && of.seen[evidence] > 1 {
		of.is = Convicted
	}
	if _, ok := s.known[hash]; !ok {
		s.makeRoom()
	}
	s.known[hash] = of
	return of.is
}

// Acquit records that a suspected request was answered.
func (s *Suspects) Acquit(key string, body func() [][]byte) {
	hash := s.hash(key, body())
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, hash)
}

func (s *Suspects) hash(key string, body [][]byte) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.WriteString(key) // never fails, like all of them
	_ = h.WriteByte(0)
	for _, piece := range body {
		_, _ = h.Write(piece)
	}
	return h.Sum64()
}

// look returns what is known of the request with a hash. The caller holds s.mu.
func (s *Suspects) look(hash uint64) suspect {
	found, ok := s.known[hash]
	if ok && time.Since(found.at) > suspectTime {
		delete(s.known, hash)
		return suspect{}
	}
	return found
}

// makeRoom removes expired entries, and the oldest one if that isn't enough. The caller holds s.mu.
func (s *Suspects) makeRoom() {
	var oldest uint64
	for hash, known := range s.known {
		if time.Since(known.at) > suspectTime {
			delete(s.known, hash)
		} else if first, ok := s.known[oldest]; !ok || known.at.Before(first.at) {
			oldest = hash
		}
	}
	if len(s.known) >= maxSuspects {
		delete(s.known, oldest)
	}
}
