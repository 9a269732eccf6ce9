package warm

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

const (
	recordVersion = 4
	// recordBytes bounds a description. One with a chain for a prompt of 100 MB is smaller.
	recordBytes = 4 << 20
	linkBytes   = len(prefix.Sum{}) + 4
)

// record is the description of a state, as it is in its file.
type record struct {
	Model        string    `json:"model"`
	Owner        string    `json:"owner,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	Prompt       []byte    `json:"prompt"` // the links of the chain, each a sum and a weight
	PromptTokens int       `json:"prompt_tokens"`
	Tokens       int       `json:"tokens"`
	Bytes        int64     `json:"bytes"`
	Checksum     uint32    `json:"crc32c"`
	Created      time.Time `json:"created"`
	Used         time.Time `json:"used"`
}

// signed is a record in its envelope.
type signed struct {
	Version int             `json:"version"`
	MAC     []byte          `json:"mac"` // over the place of the state and its record
	State   json.RawMessage `json:"state"`
}

// encode returns the content of the file for a description. Only decode with the same key and place accepts it.
func (r *record) encode(key *secret, place string) ([]byte, error) {
	state, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(signed{recordVersion, key.mac(place, state), state})
}

// decode is the reverse of encode. Its error is errDamaged.
func decode(content []byte, key *secret, place string) (*record, error) {
	var s signed
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if s.Version != recordVersion || !hmac.Equal(s.MAC, key.mac(place, s.State)) {
		return nil, fmt.Errorf("%w: it is of another version or another home", errDamaged)
	}
	r := new(record)
	if err := json.Unmarshal(s.State, r); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return r, nil
}

func (r *record) check() error {
	if r.Model == "" || r.Tokens <= 0 || r.PromptTokens <= 0 || r.PromptTokens > r.Tokens || r.Bytes <= 0 {
		return errors.New("a value is missing or out of range")
	}
	_, err := unpack(r.Prompt)
	return err
}

func pack(c prefix.Chain) []byte {
	b := make([]byte, 0, len(c)*linkBytes)
	for _, link := range c {
		b = append(b, link.Sum[:]...)
		b = binary.BigEndian.AppendUint32(b, uint32(link.Weight)) //nolint:gosec // weights aren't negative
	}
	return b
}

func unpack(b []byte) (prefix.Chain, error) {
	if len(b) == 0 || len(b)%linkBytes != 0 {
		return nil, fmt.Errorf("a chain of %d bytes", len(b))
	}
	c := make(prefix.Chain, 0, len(b)/linkBytes)
	last := int32(0)
	for r := bytes.NewBuffer(b); r.Len() > 0; {
		var link prefix.Link
		copy(link.Sum[:], r.Next(len(link.Sum)))
		link.Weight = int32(binary.BigEndian.Uint32(r.Next(4))) //nolint:gosec // a negative weight falls
		if link.Weight < last {
			return nil, errors.New("the weights of a chain don't rise")
		}
		last = link.Weight
		c = append(c, link)
	}
	return c, nil
}

// secret is the content of the file of the key.
type secret [32]byte

func newSecret() (k secret) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

func (k *secret) chains() prefix.Key {
	return prefix.Key(binary.LittleEndian.Uint64(k.mac("the chains of prompts", nil)))
}

// mac authenticates a text at a place.
func (k *secret) mac(place string, text []byte) []byte {
	m := hmac.New(sha256.New, k[:])
	_, _ = fmt.Fprintf(m, "%s\n%s", place, text)
	return m.Sum(nil)
}
