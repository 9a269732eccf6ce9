package node

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	suspectTime = time.Hour // for how long a request is remembered that an engine failed at
	maxSuspects = 4096
)

// Suspicion is what is known of a request from earlier failures of engines.
type Suspicion uint8

// A request is suspected after an engine failed while it was being processed, and convicted after another did while nobody
// else's request was.
const (
	Unsuspected Suspicion = iota
	Suspected
	Convicted
)

// suspects are requests that were being processed when an engine failed, by their hash. The seed is random, so nobody can
// make a request that has another's hash.
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

// Suspicion is what is known of a request for a model. The body is only asked for where there are suspects at all.
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

// Blame says that an engine failed while it processed a request, and tells what is known of the request now. It is alone
// when nobody else's request can have been the reason.
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

// Acquit says that a suspected request was answered.
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

// look needs the lock.
func (s *suspects) look(hash uint64) Suspicion {
	found, ok := s.known[hash]
	if ok && time.Since(found.at) > suspectTime {
		delete(s.known, hash)
		return Unsuspected
	}
	return found.is
}

// makeRoom forgets what is too old, and the oldest where that isn't enough. It needs the lock.
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
