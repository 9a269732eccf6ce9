// Package prefix identifies prompts by their beginnings. Engines use the state of a prompt again for any other that begins like
// it, so the question is always how much two prompts have in common. It is answered without a tokenizer and without the prompts
// themselves: by chains of hashes.
package prefix

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/zeebo/xxh3"
)

// blockSize is the distance between the links of a long message, in bytes.
const blockSize = 4 << 10

// Key makes the sums of one server differ from those of any other. The sums aren't cryptographic, so only their holder may see them.
type Key uint64

// Sum identifies the beginning of a prompt.
type Sum [12]byte

// Link is a place where prompts may part: the end of a block or of a message.
type Link struct {
	Sum    Sum
	Weight int32 // of the prompt up to here, in bytes; its tokens are roughly proportional
}

// Chain has the links of a prompt, in order. Prompts that begin alike have their first links in common.
type Chain []Link

// Common returns the number of links that two chains have in common.
func (c Chain) Common(o Chain) int {
	n := min(len(c), len(o))
	if n == 0 || c[n-1].Sum == o[n-1].Sum { // each sum includes those before it
		return n
	}
	return sort.Search(n-1, func(i int) bool { return c[i].Sum != o[i].Sum })
}

// Weight returns the weight of the first n links.
func (c Chain) Weight(n int) int {
	if n == 0 {
		return 0
	}
	return int(c[n-1].Weight)
}

// Maker makes the chain of a prompt. Each link's sum is the sum of its text and of the last link, by XXH3. Two texts with the same sum
// would cost time, but never an answer: engines compare tokens.
type Maker struct {
	key    Key
	open   sum // of the parts of the open message since its last link
	last   sum // of all before them
	chain  Chain
	weight int
}

type sum = xxh3.Uint128

// New returns a Maker that has seen nothing.
func New(key Key) *Maker { return &Maker{key: key} }

// Expect makes room for the links of a number of messages, of a number of bytes in all.
func (m *Maker) Expect(messages, bytes int) {
	m.chain = slices.Grow(m.chain, messages+bytes/blockSize+1)
}

// Message adds a message, or the last part of one.
func (m *Maker) Message(p []byte) {
	m.Part(p)
	m.End()
}

// Part adds a part of a message. Prompts with the same messages have to be given in the same parts.
func (m *Maker) Part(p []byte) {
	for len(p) >= blockSize {
		m.weight += blockSize
		m.add(xxh3.Hash128(p[:blockSize]))
		m.link(endOfBlock)
		p = p[blockSize:]
	}
	m.weight += len(p)
	m.add(xxh3.Hash128(p))
}

// Opaque adds a part that stands for something else, such as an image, which counts with its own weight.
func (m *Maker) Opaque(p []byte, weight int) {
	m.add(xxh3.Hash128(p))
	m.weight += weight
}

// End ends a message.
func (m *Maker) End() { m.link(endOfMessage) }

func (m *Maker) add(part sum) {
	if m.open == (sum{}) {
		m.open = part
	} else {
		m.open = join(m.open, part, 0)
	}
}

func join(a, b sum, seed uint64) sum {
	var both [32]byte
	binary.LittleEndian.PutUint64(both[:], a.Lo)
	binary.LittleEndian.PutUint64(both[8:], a.Hi)
	binary.LittleEndian.PutUint64(both[16:], b.Lo)
	binary.LittleEndian.PutUint64(both[24:], b.Hi)
	return xxh3.Hash128Seed(both[:], seed)
}

// Chain returns the chain of what was added.
func (m *Maker) Chain() Chain { return m.chain }

// The kinds of links.
const (
	endOfBlock   = 0
	endOfMessage = 1
)

// link adds a link after the open parts.
func (m *Maker) link(kind Key) {
	m.last = join(m.last, m.open, uint64(m.key^kind))
	m.open = sum{}
	link := Link{Weight: int32(min(m.weight, math.MaxInt32))} //nolint:gosec // it is in range
	binary.LittleEndian.PutUint64(link.Sum[:], m.last.Lo)
	binary.LittleEndian.PutUint32(link.Sum[8:], uint32(m.last.Hi)) //nolint:gosec // the rest isn't needed
	m.chain = append(m.chain, link)
}

// State describes the state of a prompt and its answer, as a slot of an engine or a file has it.
type State struct {
	Owner        string `json:"owner,omitempty"`
	Conversation string `json:"conversation,omitempty"` // of stored conversations: the id of the first response; else empty
	Prompt       Chain  `json:"prompt"`                 // of the request that made it
	PromptTokens int    `json:"prompt_tokens"`          // tokens at the end of the Prompt
	Tokens       int    `json:"tokens"`                 // all tokens, with those of the answer
	Bytes        int64  `json:"bytes"`                  // of the file, as the engine reports them; 0: there is none
}

// Common estimates how many tokens of a prompt the state has. The answer isn't counted, since the client may send it otherwise than
// the engine made it.
func (s *State) Common(prompt Chain) int {
	switch n := s.Prompt.Common(prompt); n {
	case 0:
		return 0
	case len(s.Prompt):
		return s.PromptTokens
	default:
		return int(int64(s.PromptTokens) * int64(s.Prompt.Weight(n)) / int64(max(1, s.Prompt.Weight(len(s.Prompt)))))
	}
}

const linkBytes = len(Sum{}) + 4

// MarshalText implements [encoding.TextMarshaler].
func (c Chain) MarshalText() ([]byte, error) {
	b := make([]byte, 0, len(c)*linkBytes)
	for _, link := range c {
		b = append(b, link.Sum[:]...)
		b = binary.BigEndian.AppendUint32(b, uint32(link.Weight)) //nolint:gosec // weights aren't negative
	}
	return base64.StdEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *Chain) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil || len(b)%linkBytes != 0 {
		return fmt.Errorf("a chain of %d bytes", len(text))
	}
	*c = make(Chain, 0, len(b)/linkBytes)
	for r := bytes.NewBuffer(b); r.Len() > 0; {
		var link Link
		copy(link.Sum[:], r.Next(len(link.Sum)))
		link.Weight = int32(binary.BigEndian.Uint32(r.Next(4))) //nolint:gosec // it is the reverse
		*c = append(*c, link)
	}
	return nil
}
