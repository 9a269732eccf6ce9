package request

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"

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

// Rerank is a request for ranks: how well each document answers the query.
type Rerank struct {
	Documents       []string
	Field           string // the field of the request that has them
	TopN            int    // number of documents returned, the best first
	ReturnDocuments bool
}

// Parts splits the request into smaller ones, in order.
func (r *Rerank) Parts() []*Rerank {
	var all []*Rerank
	for _, documents := range parts(r.Documents) {
		part := *r
		part.Documents = documents
		all = append(all, &part)
	}
	return all
}

// Refine returns an engine's error about ranks with the field of the request that is at fault.
func (r *Rerank) Refine(err *translate.Error) *translate.Error { return refineInput(err, r.Field) }

// Reranked is the answer to a Rerank.
type Reranked struct {
	Scores []float64 // of each document, in the order of the request; higher is better
	Prompt int       // tokens of all pairs of query and document
}

// Join adds the answer to the next part.
func (r *Reranked) Join(next *Reranked) {
	r.Scores = append(r.Scores, next.Scores...)
	r.Prompt += next.Prompt
}

// Limits of the texts that an engine is sent in one request. A single text may be longer.
const (
	partInputs = 32
	partBytes  = 32 << 10
)

func parts[T ~string | ~[]byte](texts []T) (parts [][]T) {
	first, size := 0, 0
	for i, text := range texts {
		if i > first && (i-first == partInputs || size+len(text) > partBytes) {
			parts = append(parts, texts[first:i])
			first, size = i, 0
		}
		size += len(text)
	}
	return append(parts, texts[first:])
}

// AppendVector appends a vector of little-endian float32 as a JSON array.
func AppendVector(dst, vector []byte) []byte {
	dst = append(dst, '[')
	for i := 0; i+4 <= len(vector); i += 4 {
		dst = strconv.AppendFloat(jsonbody.AppendComma(dst), float64(component(vector, i)), 'g', -1, 32)
	}
	return append(dst, ']')
}

func component(vector []byte, at int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(vector[at:]))
}

// ShortVector returns the first dimensions of a vector, normalized to length 1, as models trained for this expect.
func ShortVector(vector []byte, dimensions int) []byte {
	if len(vector) == dimensions*4 {
		return vector
	}
	sum := 0.0
	for i := 0; i < dimensions*4; i += 4 {
		x := float64(component(vector, i))
		sum += x * x
	}
	length := math.Sqrt(sum)
	if length == 0 {
		length = 1
	}
	short := make([]byte, 0, dimensions*4)
	for i := 0; i < dimensions*4; i += 4 {
		short = binary.LittleEndian.AppendUint32(short, math.Float32bits(float32(float64(component(vector, i))/length)))
	}
	return short
}
