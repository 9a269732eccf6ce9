// Package prefix identifies prompts by their beginnings. Engines use the state of a prompt again for any other that begins like
// it, so the question is always how much two prompts have in common. It is answered without a tokenizer and without the prompts
// themselves: by chains of keyed hashes.
package prefix

import (
	"crypto/sha256"
	"hash"
)

// blockSize is the distance between the links of a long message, in bytes.
const blockSize = 4 << 10

// Key makes the hashes of one server meaningless to anybody else.
type Key [32]byte

// Sum identifies the beginning of a prompt.
type Sum [16]byte

// Link is a place where prompts may part: the end of a block or of a message.
type Link struct {
	Sum    Sum
	Weight int // of the prompt up to here, in bytes; its tokens are roughly proportional
}

// Chain has the links of a prompt, in order. Prompts that begin alike have their first links in common.
type Chain []Link

// Common returns the number of links that two chains have in common.
func (c Chain) Common(o Chain) int {
	n := 0
	for n < len(c) && n < len(o) && c[n].Sum == o[n].Sum {
		n++
	}
	return n
}

// Weight returns the weight of the first n links.
func (c Chain) Weight(n int) int {
	if n == 0 {
		return 0
	}
	return c[n-1].Weight
}

// Maker makes the chain of a prompt.
type Maker struct {
	key    Key
	hash   hash.Hash
	chain  Chain
	block  int // bytes in the open block
	weight int
}

// New returns a Maker that has seen nothing.
func New(key Key) *Maker {
	m := &Maker{key: key, hash: sha256.New()}
	m.begin()
	return m
}

// Write adds bytes of a message. It never fails.
func (m *Maker) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		part := p[:min(len(p), blockSize-m.block)]
		_, _ = m.hash.Write(part)
		m.block, m.weight, p = m.block+len(part), m.weight+len(part), p[len(part):]
		if m.block == blockSize {
			m.link(0)
		}
	}
	return n, nil
}

// Opaque adds bytes that stand for something else, such as an image, which counts with its own weight.
func (m *Maker) Opaque(p []byte, weight int) {
	sum := sha256.Sum256(p)
	_, _ = m.hash.Write(sum[:])
	m.weight += weight
}

// End ends a message.
func (m *Maker) End() { m.link(1) }

// Chain returns the chain of what was added.
func (m *Maker) Chain() Chain { return m.chain }

// link ends a block. The kind keeps the end of a message apart from that of a block.
func (m *Maker) link(kind byte) {
	_, _ = m.hash.Write([]byte{kind})
	var sum [sha256.Size]byte
	m.hash.Sum(sum[:0])
	m.chain = append(m.chain, Link{Sum(sum[:len(Sum{})]), m.weight})
	m.begin()
}

// begin begins a block, with the key and what came before.
func (m *Maker) begin() {
	m.hash.Reset()
	_, _ = m.hash.Write(m.key[:])
	if n := len(m.chain); n > 0 {
		_, _ = m.hash.Write(m.chain[n-1].Sum[:])
	}
	m.block = 0
}
