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
	const most = len(`,"id_slot":1234567890,"cache_prompt":false}`)
	pinned := slices.Clone(body)
	last := &pinned[len(pinned)-1]
	end := bytes.LastIndexByte(*last, '}')
	fields := append(append(make([]byte, 0, end+most), (*last)[:end]...), `,"id_slot":`...)
	fields = strconv.AppendInt(fields, int64(slot), 10)
	if !reuse {
		fields = append(fields, `,"cache_prompt":false`...)
	}
	*last = append(fields, '}')
	return pinned
}
