package api

import (
	"encoding/json"
	"sync"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
)

// encodedModels caches the JSON of models that aren't loaded: with thousands of models, encoding them would be most of the cost of
// GET /api/v1/models. A model in the catalog's list never changes; it is replaced.
type encodedModels struct {
	mu   sync.Mutex
	json map[*catalog.Model][]byte
}

// append appends the models as the elements of a JSON array.
func (e *encodedModels) append(dst []byte, models []node.ModelState) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.json == nil || len(e.json) > 2*len(models)+1000 { // mostly models of older lists
		e.json = make(map[*catalog.Model][]byte, len(models))
	}
	for i := range models {
		m := &models[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		keeps := m.Listed != nil && len(m.Instances) == 0 && len(m.Places) == 0
		if known, ok := e.json[m.Listed]; ok && keeps {
			dst = append(dst, known...)
			continue
		}
		text, err := json.Marshal(describe(*m))
		if err != nil {
			return nil, err
		}
		if keeps {
			e.json[m.Listed] = text
		}
		dst = append(dst, text...)
	}
	return dst, nil
}
