package request

import (
	"encoding/json"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Embedding is what a request for embeddings asks for.
type Embedding struct {
	Inputs     []json.RawMessage // each a string, or an array of token ids
	Dimensions int               // how many of each vector's; 0: all
	Base64     bool              // little-endian float32 in base64, not numbers

	IsPart bool // of a request with more inputs
}

// Parts are requests for some of the inputs each, in order. An engine says nothing before it has all vectors of a request.
func (e *Embedding) Parts() []*Embedding {
	var all []*Embedding
	for _, inputs := range parts(e.Inputs) {
		part := *e
		part.Inputs, part.IsPart = inputs, len(inputs) < len(e.Inputs)
		all = append(all, &part)
	}
	return all
}

// Refine makes an engine's error about embeddings say which field of the request it is about.
func (e *Embedding) Refine(err *translate.Error) *translate.Error { return refineInput(err, "input") }

func refineInput(err *translate.Error, param string) *translate.Error {
	refined := *err
	if err.Kind == translate.KindContextOverflow {
		refined.Param = param
	}
	return &refined
}

// Embedded is an engine's answer to a request for embeddings.
type Embedded struct {
	Vectors [][]byte // each little-endian float32
	Prompt  int      // tokens of all inputs
}

// Join adds the vectors of the inputs that follow.
func (e *Embedded) Join(next *Embedded) {
	e.Vectors = append(e.Vectors, next.Vectors...)
	e.Prompt += next.Prompt
}
