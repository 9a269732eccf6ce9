package translate

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
)

// maxInputs bounds the texts of one request for embeddings or ranks.
const maxInputs = 4096

// EmbeddingWire is the part of a Wire that embeddings need.
type EmbeddingWire interface {
	// Embeddings makes the engine's request.
	Embeddings(body *Body, e *Embedding) Upstream
	// Embedded reads the answer: a vector for each input, in order.
	Embedded(answer []byte, inputs int) (*Embedded, *Error)
}

// Embedding is what a request for embeddings asks for.
type Embedding struct {
	Inputs     []json.RawMessage // each a string, or an array of token ids
	Dimensions int               // how many of each vector's; 0: all
	Base64     bool              // little-endian float32 in base64, not numbers

	isPart bool // of a request with more inputs
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

// An engine is asked for the vectors or ranks of so many texts at a time, and of so many bytes of them unless one is longer.
const (
	partInputs = 32
	partBytes  = 32 << 10
)

// parts cuts texts into what an engine is asked for at a time.
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

// Parts are requests for some of the inputs each, in order. An engine says nothing before it has all vectors of a request.
func (e *Embedding) Parts() []*Embedding {
	var all []*Embedding
	for _, inputs := range parts(e.Inputs) {
		part := *e
		part.Inputs, part.isPart = inputs, len(inputs) < len(e.Inputs)
		all = append(all, &part)
	}
	return all
}

// ParseEmbedding reads a request for embeddings.
func ParseEmbedding(body *Body) (*Embedding, *Error) {
	inputs, err := texts(body, "input")
	if err != nil {
		return nil, err
	}
	if len(inputs) > maxInputs {
		return nil, Invalid("invalid_value", "input", `"input" must hold at most `+strconv.Itoa(maxInputs)+` texts. Send several requests.`)
	}
	for _, input := range inputs {
		if string(input) == `""` {
			return nil, Invalid("invalid_value", "input", `"input" must not hold an empty text.`)
		}
	}
	e := &Embedding{Inputs: inputs}
	if e.Dimensions, _, err = count(body, "dimensions", 1, math.MaxInt32); err != nil {
		return nil, err
	}
	format, err := body.String("encoding_format")
	switch {
	case err != nil:
		return nil, err
	case format != "" && format != "float" && format != "base64":
		return nil, Invalid("invalid_value", "encoding_format", `"encoding_format" must be "float" or "base64".`)
	}
	e.Base64 = format == "base64"
	return e, nil
}

// Refine makes an engine's error about embeddings say which field of the request it is about.
func (e *Embedding) Refine(err *Error) *Error { return refineInput(err, "input") }

func refineInput(err *Error, param string) *Error {
	refined := *err
	if err.Kind == KindContextOverflow {
		refined.Param = param
	}
	return &refined
}

// EmbeddingBody is the response to a request for embeddings. A vector that has fewer dimensions than are asked for is an error.
func EmbeddingBody(e *Embedding, model string, got *Embedded) ([]byte, *Error) {
	out := []byte(`{"object":"list","data":[`)
	for i, vector := range got.Vectors {
		if have := len(vector) / 4; e.Dimensions > have {
			return nil, Invalid("invalid_value", "dimensions",
				`"dimensions" is `+strconv.Itoa(e.Dimensions)+`, but the model's vectors have `+strconv.Itoa(have)+`: ask for at most as many.`)
		}
		if e.Dimensions > 0 {
			vector = shortened(vector, e.Dimensions)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, `{"object":"embedding","index":`...)
		out = append(out, strconv.Itoa(i)...)
		out = append(out, `,"embedding":`...)
		out = append(appendVector(out, vector, e.Base64), '}')
	}
	out = append(out, `],"model":`...)
	out = appendJSON(out, model)
	out = append(out, `,"usage":`...)
	out = appendJSON(out, inputUsage{got.Prompt, got.Prompt})
	return append(out, '}'), nil
}

// inputUsage is the usage of what has no output in tokens.
type inputUsage struct {
	Prompt int `json:"prompt_tokens"`
	Total  int `json:"total_tokens"`
}

func appendVector(dst, vector []byte, inBase64 bool) []byte {
	if inBase64 {
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, vector)
		return append(dst, '"')
	}
	dst = append(dst, '[')
	for i := 0; i+4 <= len(vector); i += 4 {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendFloat(dst, float64(component(vector, i)), 'g', -1, 32)
	}
	return append(dst, ']')
}

func component(vector []byte, at int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(vector[at:]))
}

// shortened is the first dimensions of a vector, made as long as 1 again, as models that are trained for it want it.
func shortened(vector []byte, dimensions int) []byte {
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

// isFinite tells that a vector has nothing that JSON can't say.
func isFinite(vector []byte) bool {
	for i := 0; i+4 <= len(vector); i += 4 {
		if x := float64(component(vector, i)); math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}
