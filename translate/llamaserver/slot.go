package llamaserver

import (
	"bytes"
	"slices"
	"strconv"
)

// Generates tells chats and completions from what is only counted or turned into text.
func (Wire) Generates(path string) bool {
	return path == chatPath || path == textPath || path == infillPath
}

// Pin has the engine use one slot for a body that it is sent, and without reuse none of what the slot keeps of earlier prompts.
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
