package node

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

// A request is suspected after an engine failed while processing it, and convicted after another engine failed while
// processing nothing else.
const (
	Unsuspected Suspicion = iota
	Suspected
	Convicted
)

// suspects has the requests that were being processed when an engine failed, by hash. The seed is random, so a client can't
// craft a request with the hash of another.
type suspects struct {
	seed maphash.Seed

	mu    sync.Mutex
	known map[uint64]suspect
}

type suspect struct {
	is Suspicion
	at time.Time
}

func newSuspects() *suspects {
	return &suspects{seed: maphash.MakeSeed(), known: map[uint64]suspect{}}
}

// Suspicion returns the suspicion against a request for a model. It calls body only if there are suspects.
func (n *Node) Suspicion(key string, body func() [][]byte) Suspicion {
	s := n.suspects
	s.mu.Lock()
	hasNone := len(s.known) == 0
	s.mu.Unlock()
	if hasNone {
		return Unsuspected
	}
	hash := s.hash(key, body())
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(hash)
}

// Blame records that an engine failed while processing a request, and returns the new suspicion against it. alone means
// that no other request can have been the cause.
func (n *Node) Blame(key string, body func() [][]byte, alone bool) Suspicion {
	s := n.suspects
	hash := s.hash(key, body())
	s.mu.Lock()
	defer s.mu.Unlock()
	is := s.look(hash)
	if is == Unsuspected {
		is = Suspected
	} else if alone {
		is = Convicted
	}
	if _, ok := s.known[hash]; !ok {
		s.makeRoom()
	}
	s.known[hash] = suspect{is, time.Now()}
	return is
}

// Acquit records that a suspected request was answered.
func (n *Node) Acquit(key string, body func() [][]byte) {
	s := n.suspects
	hash := s.hash(key, body())
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, hash)
}

func (s *suspects) hash(key string, body [][]byte) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.WriteString(key) // never fails, like all of them
	_ = h.WriteByte(0)
	for _, piece := range body {
		_, _ = h.Write(piece)
	}
	return h.Sum64()
}

// look returns the suspicion against the request with a hash. The caller holds s.mu.
func (s *suspects) look(hash uint64) Suspicion {
	found, ok := s.known[hash]
	if ok && time.Since(found.at) > suspectTime {
		delete(s.known, hash)
		return Unsuspected
	}
	return found.is
}

// makeRoom removes expired entries, and the oldest one if that isn't enough. The caller holds s.mu.
func (s *suspects) makeRoom() {
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
