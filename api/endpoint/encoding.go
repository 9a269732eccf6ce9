package endpoint

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
)

// encodedModels caches the JSON of models: with thousands of models, encoding them would be most of the cost of a listing. A model in the
// catalog's list never changes; it is replaced. What may change without it, such as its instances and names, isn't cached.
type encodedModels struct {
	mu   sync.Mutex
	json map[*catalog.Model]encodedModel
	most int // models of the longest list; a token with few models has a short one
}

type encodedModel struct {
	text    []byte // after a comma
	context int    // the length in it
}

// Of returns the elements of a JSON array of the models, in pieces, which must not be modified. The first is left
// empty, for what comes before. Models that are plain are cached.
func (e *encodedModels) Of(models []node.ModelState, isPlain func(*node.ModelState) bool, describe func(*node.ModelState) any) ([][]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.most = max(e.most, len(models))
	if e.json == nil || len(e.json) > 2*e.most+1000 { // mostly models of older lists
		e.json = make(map[*catalog.Model]encodedModel, len(models))
	}
	pieces := make([][]byte, 1, len(models)+2)
	for i := range models {
		m := &models[i]
		keeps := m.IsListed && !m.IsCopy && isPlain(m)
		kept, known := e.json[m.Model]
		text := kept.text
		if !known || !keeps || kept.context != m.ContextLength {
			encoded, err := json.Marshal(describe(m))
			if err != nil {
				return nil, err
			}
			if text = append([]byte{','}, encoded...); keeps {
				e.json[m.Model] = encodedModel{text, m.ContextLength}
			}
		}
		if i == 0 {
			text = text[1:]
		}
		pieces = append(pieces, text)
	}
	return pieces, nil
}

// pieceBuffers are buffers of the size in which answers are written.
var pieceBuffers = sync.Pool{New: func() any { return new([bodyPiece]byte) }}

// WritePieces is writeJSON of a body in many pieces.
func WritePieces(c *Call, status int, pieces [][]byte) {
	size := 0
	for _, piece := range pieces {
		size += len(piece)
	}
	beginJSON(c, status, strconv.Itoa(size))
	if c.Request.Method == http.MethodHead {
		return
	}
	buf := pieceBuffers.Get().(*[bodyPiece]byte)
	defer pieceBuffers.Put(buf)
	n := 0
	for _, piece := range pieces {
		for len(piece) > 0 {
			copied := copy(buf[n:], piece)
			n, piece = n+copied, piece[copied:]
			if n == len(buf) {
				if c.Client.write(buf[:], true) != nil {
					return // the client has disconnected
				}
				n = 0
			}
		}
	}
	_ = c.Client.write(buf[:n], size > len(buf)) // the client may have disconnected
}
