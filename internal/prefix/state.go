package prefix

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

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
