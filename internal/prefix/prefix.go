// Package prefix identifies prompts by their beginnings. Engines use the state of a prompt again for any other that begins like
// it, so the question is always how much two prompts have in common. It is answered without a tokenizer and without the prompts
// themselves: by chains of keyed hashes.
package prefix

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
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

// Maker makes the chain of a prompt. A text goes through a fast hash, whose sums nobody sees. Each link's sum is the sum of its text and
// the last link, encrypted (a CBC-MAC). Two texts with the same fast sum would cost time, but never an answer: engines compare tokens.
type Maker struct {
	key    cipher.Block
	text   xxhash.Digest // of the open block
	next   Sum           // the input of the key, which would be allocated anew for each link
	chain  Chain
	block  int  // bytes in the open block
	opaque bool // the block has something else, too
	weight int
}

// New returns a Maker that has seen nothing.
func New(key Key) *Maker {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // 32 bytes are a key of AES-256
	}
	m := &Maker{key: block}
	m.text.Reset()
	return m
}

// Expect makes room for the links of a number of messages, of a number of bytes in all.
func (m *Maker) Expect(messages, bytes int) {
	m.chain = slices.Grow(m.chain, messages+bytes/blockSize+1)
}

// Write adds bytes of a message. It never fails.
func (m *Maker) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		part := p[:min(len(p), blockSize-m.block)]
		_, _ = m.text.Write(part)
		m.block, m.weight, p = m.block+len(part), m.weight+len(part), p[len(part):]
		if m.block == blockSize {
			m.end(endOfBlock)
		}
	}
	return n, nil
}

// Message is Write and End of a whole message, for less.
func (m *Maker) Message(p []byte) {
	if m.block > 0 || m.opaque {
		_, _ = m.Write(p)
		m.End()
		return
	}
	for len(p) >= blockSize {
		m.weight += blockSize
		m.link(xxhash.Sum64(p[:blockSize]), endOfBlock)
		p = p[blockSize:]
	}
	m.weight += len(p)
	m.link(xxhash.Sum64(p), endOfMessage)
}

// Opaque adds bytes that stand for something else, such as an image, which counts with its own weight.
func (m *Maker) Opaque(p []byte, weight int) {
	_, _ = m.text.Write(binary.LittleEndian.AppendUint64(nil, xxhash.Sum64(p)))
	m.opaque = true
	m.weight += weight
}

// End ends a message.
func (m *Maker) End() { m.end(endOfMessage) }

// Chain returns the chain of what was added.
func (m *Maker) Chain() Chain { return m.chain }

// end ends the open block.
func (m *Maker) end(kind byte) {
	m.link(m.text.Sum64(), kind)
	m.text.Reset()
	m.block, m.opaque = 0, false
}

// The kinds of links.
const (
	endOfBlock   = 0
	endOfMessage = 1
)

// link adds a link after a text.
func (m *Maker) link(text uint64, kind byte) {
	m.next = Sum{8: kind}
	binary.LittleEndian.PutUint64(m.next[:], text)
	if n := len(m.chain); n > 0 {
		subtle.XORBytes(m.next[:], m.next[:], m.chain[n-1].Sum[:])
	}
	m.key.Encrypt(m.next[:], m.next[:])
	m.chain = append(m.chain, Link{m.next, m.weight})
}
