package llamaserver

import (
	"bytes"
	"slices"
	"strconv"
)

// Generates reports whether requests to a path generate tokens, and so take a slot.
func (Wire) Generates(path string) bool {
	return path == chatPath || path == textPath || path == infillPath
}

// Pin returns the body of a request that uses the given slot. Without reuse, the cached prompt of the slot isn't used.
func (Wire) Pin(body [][]byte, slot int, reuse bool) [][]byte {
	fields := `,"id_slot":` + strconv.Itoa(slot)
	if !reuse {
		fields += `,"cache_prompt":false`
	}
	pinned := slices.Clone(body)
	last := &pinned[len(pinned)-1]
	end := bytes.LastIndexByte(*last, '}')
	*last = append(slices.Clone((*last)[:end]), fields+"}"...)
	return pinned
}
