package endpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// Find finds a model that the request's identity may use. Neither the error nor its time tells whether there are others.
func (c *Call) Find(name string) (node.Target, error) {
	target, err := c.Node.Names.Find(c.Request.Context(), name)
	return permitted(c, name, target, err)
}

// FindDraft is find for the draft model of a model that the identity may use.
func (c *Call) FindDraft(model, name string) (node.Target, error) {
	target, err := c.Node.Names.FindDraft(c.Request.Context(), model, name)
	return permitted(c, name, target, err)
}

// permitted returns a target that was found by its name, or the error, if the identity may know about it.
func permitted(c *Call, name string, target node.Target, err error) (node.Target, error) {
	broken, isBroken := errors.AsType[*node.BrokenModelError](err)
	_, isUnknown := errors.AsType[*catalog.NotFoundError](err)
	key := target.Model.FullKey()
	if isBroken {
		key = broken.Key
	}
	switch {
	case (err == nil || isBroken) && !c.Identity.MayUse(key):
		c.Node.Names.FindNothing(c.Request.Context(), name)
		return node.Target{}, c.UnknownModel(name)
	case isUnknown && c.IsRestricted():
		return node.Target{}, c.UnknownModel(name)
	case err != nil:
		return node.Target{}, err
	case target.Model.IsRemote && c.Identity.IsNode():
		return node.Target{}, &catalog.NotFoundError{Name: name}
	}
	c.Running.Uses(key)
	return target, nil
}

// IsRestricted reports whether there may be models that the request's identity may not use.
func (c *Call) IsRestricted() bool { return c.Identity != nil && len(c.Identity.Models) > 0 }

// UnknownModel is the error of a name of no model that the identity may use. It lists those that it may use.
func (c *Call) UnknownModel(name string) error {
	models, err := c.Models()
	if err != nil {
		return err
	}
	keys := make([]string, len(models))
	for i := range models {
		keys[i] = models[i].Key
	}
	return &catalog.NotFoundError{Name: name, Known: keys, Limited: true}
}

// Models are the models that the request's identity may use. Another node gets those of this machine, without their places elsewhere.
func (c *Call) Models() ([]node.ModelState, error) {
	all, err := c.Node.Models(c.Request.Context())
	if err != nil || !c.IsRestricted() && !c.Identity.IsNode() {
		return all, err
	}
	var may []node.ModelState
	for _, m := range all {
		if !c.Identity.MayUse(m.FullKey()) || m.IsRemote && c.Identity.IsNode() {
			continue
		}
		if c.Identity.IsNode() {
			m.Places = nil
			m.Instances = slices.DeleteFunc(slices.Clone(m.Instances), func(in supervisor.Info) bool { return in.Spec.Remote != nil })
		}
		may = append(may, m)
	}
	return may, nil
}

// ModelsToList are models with the contexts that requests get.
func (c *Call) ModelsToList() ([]node.ModelState, error) {
	models, err := c.Models()
	if err != nil {
		return nil, err
	}
	models = slices.Clone(models)
	c.Node.Loads.SetContexts(c.Request.Context(), models)
	return models, nil
}

// MayUseInstance reports whether the request's identity may use the model of an instance, if there is such an instance.
func MayUseInstance(c *Call, id string) bool {
	in := Instance(c, id)
	return in.ID == "" || c.Identity.MayUse(in.Spec.Model.FullKey())
}

// Instance is the instance with an id; the zero value if there is none.
func Instance(c *Call, id string) supervisor.Info {
	for _, in := range c.Node.Instances() {
		if in.ID == id {
			return in
		}
	}
	return supervisor.Info{}
}

// ListEntry is an entry of GET /v1/models, in any dialect: an instance, or a model.
type ListEntry struct {
	ID      string
	Model   *catalog.Model
	Context int // that a request gets, in tokens; 0: unknown
	State   string
}

// The states of models, as v0 has them.
const (
	stateLoaded    = "loaded"
	stateLoading   = "loading"
	StateNotLoaded = "not-loaded"
)

// Entries are the loaded instances, as a dialect describes them, followed by the other models if the settings say so. Instances of remotes
// are listed once, by the model's key: clients ask for what is listed, and a name of one place would keep them from the others.
func Entries[T any](c *Call, describe func(*ListEntry) T) ([]T, error) {
	models, err := c.ModelsToList()
	if err != nil {
		return nil, err
	}
	instances := c.Node.Instances()
	var entries, others []ListEntry
	for i := range models {
		m := &models[i]
		isKey := func(in supervisor.Info) bool { return in.ID == m.Key }
		isListed := slices.ContainsFunc(m.Instances, isKey)
		for _, in := range m.Instances {
			e := ListEntry{in.ID, m.Model, in.Spec.ContextLength, stateLoaded}
			if in.Spec.Remote != nil {
				if isListed {
					continue
				}
				e.ID, e.Context, isListed = m.Key, m.ContextLength, true
			}
			entries = append(entries, e)
		}
		if len(m.Instances) == 0 {
			others = append(others, ListEntry{m.Key, m.Model, m.ContextLength, StateOf(m.Key, instances)})
		}
	}
	if c.Node.Settings().ListAll {
		entries = append(entries, others...)
	}
	described := make([]T, len(entries))
	for i := range entries {
		described[i] = describe(&entries[i])
	}
	return described, nil
}

// StateOf is the state of the model with a key.
func StateOf(key string, instances []supervisor.Info) string {
	state := StateNotLoaded
	for i := range instances {
		switch in := &instances[i]; {
		case in.Spec.Model.Key != key:
		case in.IsLoaded(), in.Spec.Remote == nil && !in.Status.IsLoading():
			return stateLoaded
		case in.Spec.Remote == nil:
			state = stateLoading
		}
	}
	return state
}

// ShowEntry is an endpoint for what the path names, as a dialect describes it: an instance, or a model whether it is loaded or not.
func ShowEntry[T any](describe func(*ListEntry) T) func(*Call) error {
	return func(c *Call) error {
		target, err := c.Find(c.Param)
		if err != nil {
			return err
		}
		return c.Answer(describe(&ListEntry{
			ID: cmp.Or(target.Instance, target.Model.Key), Model: &target.Model,
			Context: c.Node.Loads.ContextLength(c.Request.Context(), target), State: StateOf(target.Model.Key, c.Node.Instances()),
		}))
	}
}

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

// Of returns the elements of a JSON array of models, not to be modified, after an empty first piece. Plain models are cached.
func (e *encodedModels) Of(
	models []node.ModelState, isPlain func(*node.ModelState) bool, describe func(*node.ModelState) any,
) ([][]byte, error) {
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

var pieceBuffers = sync.Pool{New: func() any { return new([bodyPiece]byte) }}

// WritePieces is writeJSON of a body in many pieces.
func WritePieces(c *Call, status int, pieces [][]byte) {
	size := 0
	for _, piece := range pieces {
		size += len(piece)
	}
	begin(c, status, TypeJSON, size)
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
