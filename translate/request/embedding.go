package request

import (
	"encoding/json"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Embedding is a request for embeddings.
type Embedding struct {
	Inputs     []json.RawMessage // each a string, or an array of token ids
	Dimensions int               // dimensions of the vectors returned; 0 for all
	Base64     bool              // vectors are returned as base64 of little-endian float32

	IsPart bool // one of several parts of a request
}

// Parts splits the request into smaller ones, in order. An engine sends nothing before it has all vectors of a request.
func (e *Embedding) Parts() []*Embedding {
	var all []*Embedding
	for _, inputs := range parts(e.Inputs) {
		part := *e
		part.Inputs, part.IsPart = inputs, len(inputs) < len(e.Inputs)
		all = append(all, &part)
	}
	return all
}

// Array returns the inputs as a JSON array.
func (e *Embedding) Array() []byte {
	size := len("[]")
	for _, input := range e.Inputs {
		size += len(input) + 1
	}
	array := append(make([]byte, 0, size), '[')
	for _, input := range e.Inputs {
		array = append(jsonbody.AppendComma(array), input...)
	}
	return append(array, ']')
}

// Refine returns an engine's error about embeddings with the field of the request that is at fault.
func (e *Embedding) Refine(err *translate.Error) *translate.Error { return refineInput(err, "input") }

func refineInput(err *translate.Error, param string) *translate.Error {
	refined := *err
	if err.Kind == translate.KindContextOverflow {
		refined.Param = param
	}
	return &refined
}

// Embedded is the answer to an Embedding.
type Embedded struct {
	Vectors [][]byte // each little-endian float32
	Prompt  int      // tokens of all inputs
}

// Join adds the answer to the next part.
func (e *Embedded) Join(next *Embedded) {
	e.Vectors = append(e.Vectors, next.Vectors...)
	e.Prompt += next.Prompt
}
