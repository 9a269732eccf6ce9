package fakeengine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"slices"
	"strings"
)

// The file of a slot's state is laid out like the real one: the token ids in the clear, the state, and an appendix that may be missing. As
// little is checked: not the length of the state, nor what it was computed with.
const (
	stateMagic    = "qsgg"
	stateVersion  = 4
	stateAppendix = "SCKP"
	// tokenState is how many bytes the state has for each token.
	tokenState = 16
)

// cacheShape is what a state can be refused for: the number of its streams, and the kind of its cache.
type cacheShape struct{ Streams, Kind, Attention int32 }

// shape returns the shape of this process's cache.
func (v *server) shape() cacheShape {
	n, _, unified := v.args.slots(v.script().trainContext())
	s := cacheShape{Streams: int32(n), Kind: int32(crc32.ChecksumIEEE([]byte(v.args.cacheTypes)) >> 1)}
	if unified {
		s.Streams = 1
	}
	if v.args.attention == "off" {
		s.Attention = 1
	}
	return s
}

// weights is what the state of a token depends on and isn't checked: the content of the model's file, or else its path, and the
// arguments that change the model.
func (v *server) weights() uint32 {
	content, err := os.ReadFile(v.args.model)
	if err != nil {
		content = []byte(v.args.model)
	}
	return crc32.ChecksumIEEE(append(content, strings.Join(v.args.changes, "\x00")...))
}

// stateOf returns the states of tokens. That of a token depends on all before it.
func stateOf(weights uint32, tokens []int32) []byte {
	state, sum := make([]byte, 0, tokenState*len(tokens)), weights
	for _, token := range tokens {
		sum = crc32.Update(sum, crc32.IEEETable, binary.LittleEndian.AppendUint32(nil, uint32(token)))
		state = append(state, bytes.Repeat(binary.LittleEndian.AppendUint32(nil, sum), tokenState/4)...)
	}
	return state
}

// encodeState returns the file of a slot.
func encodeState(shape cacheShape, state []byte, tokens []int32) []byte {
	var b bytes.Buffer
	b.WriteString(stateMagic)
	for _, part := range []any{int32(stateVersion), int32(3 + len(tokens)), int32(-1), int32(1), int32(len(tokens)), tokens, shape} {
		_ = binary.Write(&b, binary.LittleEndian, part) // a buffer takes anything
	}
	b.Write(state)
	b.WriteString(stateAppendix)
	return b.Bytes()
}

// The ways in which a file is refused. The second is no error of the real server, but its end.
var (
	errBadState = errors.New("Unable to restore slot: No available space in KV cache or invalid slot save file")
	errAborted  = errors.New("GGML_ASSERT(nread <= state_size) failed")
)

// decodeState reads a file. The state is as long as the tokens need.
func decodeState(file []byte, shape cacheShape, context int) (tokens []int32, state []byte, read int, err error) {
	r := bytes.NewReader(file)
	var head struct {
		Magic             [4]byte
		Version, N        int32
		Minus, One, Count int32
	}
	if binary.Read(r, binary.LittleEndian, &head) != nil || string(head.Magic[:]) != stateMagic || head.Version != stateVersion ||
		head.N != head.Count+3 || head.Count < 0 || int(head.Count) > context {
		return nil, nil, 0, errBadState
	}
	tokens = make([]int32, head.Count)
	var is cacheShape
	if binary.Read(r, binary.LittleEndian, tokens) != nil || binary.Read(r, binary.LittleEndian, &is) != nil || is != shape ||
		slices.ContainsFunc(tokens, func(t int32) bool { return t < 0 || t >= vocabulary }) {
		return nil, nil, 0, errBadState
	}
	size := tokenState * len(tokens)
	rest := file[len(file)-r.Len():]
	switch {
	case 4*len(rest) < 3*size:
		return nil, nil, 0, errBadState
	case len(rest) < size:
		return nil, nil, 0, errAborted
	}
	read = len(file) - len(rest) + size
	if bytes.HasPrefix(rest[size:], []byte(stateAppendix)) {
		read += len(stateAppendix)
	}
	return tokens, rest[:size], read, nil
}
