package node

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/ring"
)

// The bounds of the events that are kept for those who follow them.
const (
	mostEvents     = 8192
	mostEventBytes = 4 << 20
)

// EventLog keeps the newest events. A follower is a position among them, so a slow one holds nothing up.
type EventLog struct {
	ring *ring.Ring[*Event]
	boot string       // tells the positions of this process from those of an earlier one
	seal cipher.Block // encrypts positions: they would tell everybody how much happens on the server

	mu   sync.Mutex
	jobs map[string]toldJob // by id; those that have not ended
}

func newEventLog() *EventLog {
	var key [16]byte
	_, _ = rand.Read(key[:]) // never fails
	seal, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has a right length
	}
	return &EventLog{ring: ring.New[*Event](mostEvents, mostEventBytes), boot: strings.ToLower(rand.Text()[:8]), seal: seal, jobs: map[string]toldJob{}}
}

// Events returns the node's events.
func (n *Node) Events() *EventLog { return n.events }

func (l *EventLog) add(e *Event, size int) {
	e.At = time.Now()
	l.ring.Add(e, size)
}

// Next returns the position of the next event.
func (l *EventLog) Next() uint64 { return l.ring.Next() }

// Some returns at most so many events from a position on, and the position after them. lost is the number of those that are no longer kept.
func (l *EventLog) Some(position uint64, most int) (events []*Event, next, lost uint64) {
	return l.ring.Some(position, most)
}

// Changed returns a channel that is closed when the next event is added. To miss none, call it before Some.
func (l *EventLog) Changed() <-chan struct{} { return l.ring.Changed() }

// ID returns an id for a position.
func (l *EventLog) ID(position uint64) string {
	var block [aes.BlockSize]byte
	binary.BigEndian.PutUint64(block[:], position)
	l.seal.Encrypt(block[:], block[:])
	return l.boot + "-" + hex.EncodeToString(block[:])
}

// Position returns the position with an id. isOurs is false if an earlier process gave the id. ok is false for a text that is no id.
func (l *EventLog) Position(id string) (position uint64, isOurs, ok bool) {
	boot, sealed, _ := strings.Cut(id, "-")
	block, err := hex.DecodeString(sealed)
	if err != nil || len(block) != aes.BlockSize || len(boot) != len(l.boot) {
		return 0, false, false
	}
	if boot != l.boot {
		return 0, false, true
	}
	l.seal.Decrypt(block, block)
	if binary.BigEndian.Uint64(block[8:]) != 0 {
		return 0, false, false
	}
	return binary.BigEndian.Uint64(block), true, true
}
