package warm

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

const (
	recordVersion = 4
	// recordBytes bounds a description. One with a chain for a prompt of 100 MB is smaller.
	recordBytes = 4 << 20
)

// record is the description of a state, as it is in its file.
type record struct {
	Listed
	Checksum uint32 `json:"crc32c"`
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
	byWeight := func(a, b prefix.Link) int { return cmp.Compare(a.Weight, b.Weight) }
	if r.Model == "" || r.Tokens <= 0 || r.PromptTokens <= 0 || r.PromptTokens > r.Tokens || r.Bytes <= 0 ||
		len(r.Prompt) == 0 || r.Prompt[0].Weight < 0 || !slices.IsSortedFunc(r.Prompt, byWeight) {
		return errors.New("a value is missing or out of range")
	}
	return nil
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
