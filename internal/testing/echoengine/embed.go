package echoengine

import (
	"encoding/binary"
	"encoding/json"
	"math"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Embeddings sends a line for each input.
func (Wire) Embeddings(_ *jsonbody.Body, e *request.Embedding) wire.Upstream {
	var lines []byte
	for _, input := range e.Inputs {
		lines = appendLine(lines, "measure", jsonbody.Unquote(input))
	}
	return wire.Upstream{Path: measurePath, Body: [][]byte{lines}}
}

// measured is the engine's answer.
type measured struct {
	Vectors [][]float32 `json:"vectors"`
	In      int         `json:"in"`
}

// Embedded reads the vectors.
func (Wire) Embedded(answer []byte, inputs int) (*request.Embedded, *translate.Error) {
	var m measured
	if json.Unmarshal(answer, &m) != nil || len(m.Vectors) != inputs {
		return nil, translate.Nonsense()
	}
	got := &request.Embedded{Prompt: m.In}
	for _, numbers := range m.Vectors {
		var vector []byte
		for _, x := range numbers {
			vector = binary.LittleEndian.AppendUint32(vector, math.Float32bits(x))
		}
		got.Vectors = append(got.Vectors, vector)
	}
	return got, nil
}
