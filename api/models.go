package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

type (
	openAIModels struct {
		Object string        `json:"object"`
		Data   []openAIModel `json:"data"`
	}
	openAIModel struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`

		// What OpenAI's own API doesn't tell: the context under OpenRouter's name and vLLM's, which clients read, and the state as in v0.
		ContextLength int    `json:"context_length,omitempty"`
		MaxModelLen   int    `json:"max_model_len,omitempty"`
		State         string `json:"state"`
	}
)

// listNative is GET /api/v1/models.
func (c *call) listNative() error {
	models, err := c.modelsToList()
	if err != nil {
		return err
	}
	isPlain := func(m *node.ModelState) bool {
		return len(m.Instances) == 0 && len(m.Places) == 0 && len(m.Aliases) == 0 && m.Lacks == ""
	}
	pieces, err := c.site.encoded.of(models, isPlain, func(m *node.ModelState) any { return describe(m) })
	if err != nil {
		return err
	}
	broken, err := c.brokenMember()
	if err != nil {
		return err
	}
	pieces[0] = []byte(`{"models":[`)
	c.writePieces(http.StatusOK, append(pieces, append(append([]byte{']'}, broken...), '}')))
	return nil
}

// brokenMember returns the member with the models whose files are unusable, after a comma, if there are any.
func (c *call) brokenMember() ([]byte, error) {
	all, err := c.node.Broken(c.r.Context())
	if err != nil {
		return nil, err
	}
	var broken []resource.Broken
	for _, m := range all {
		if c.who.MayUse(m.FullKey()) {
			broken = append(broken, resource.Broken{Key: m.Key, Path: c.node.HidePaths(c.node.ShortPath(m.Path)), Error: c.node.HidePaths(m.Err.Error())})
		}
	}
	if len(broken) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(broken)
	return append([]byte(`,"broken":`), text...), err
}

func describe(m *node.ModelState) resource.Model {
	d := DescribeModel(m.Model)
	d.Aliases, d.Places, d.Via, d.EngineProblem, d.ContextLength = m.Aliases, placesOf(m), viaOf(m), m.Lacks, m.ContextLength
	for _, in := range m.Instances {
		d.Instances = append(d.Instances, resource.Instance{ID: in.ID, Config: configOf(in, m.Choices)})
	}
	return d
}

// DescribeModel returns what the native API says of a model that isn't loaded and has no aliases.
func DescribeModel(m *catalog.Model) resource.Model {
	d := resource.Model{
		Type:             string(m.Type),
		Publisher:        m.Publisher,
		Key:              m.Key,
		DisplayName:      m.DisplayName,
		Quantization:     &resource.Quantization{Name: orNull(m.Quantization.Name), Bits: orNull(m.Quantization.BitsPerWeight)},
		SizeBytes:        m.SizeBytes,
		Params:           orNull(m.ParamsString()),
		Instances:        []resource.Instance{},
		MaxContextLength: m.MaxContextLength,
		Format:           resource.Word(m.Format),
	}
	if m.Type == catalog.TypeLLM {
		d.Architecture = m.Architecture
		d.Capabilities = &resource.Capabilities{Vision: m.Vision, ToolUse: m.ToolUse}
		if r := m.Reasoning; len(r.Options) > 0 {
			d.Capabilities.Reasoning = &resource.Reasoning{Options: r.Options, Default: orNull(r.Default)}
		}
		d.Description = &resource.Description{Description: orNull(m.Description)}
	}
	return d
}

// listOpenAI is GET /v1/models: the loaded instances, or every model if the settings say so.
func (c *call) listOpenAI() error {
	entries, err := c.entries()
	if err != nil {
		return err
	}
	list := openAIModels{Object: "list", Data: make([]openAIModel, len(entries))}
	for i := range entries {
		list.Data[i] = entries[i].openAI()
	}
	return c.answer(list)
}

// listEntry is an entry of GET /v1/models, in any dialect: an instance, or a model.
type listEntry struct {
	id      string
	model   *catalog.Model
	context int // that a request gets, in tokens; 0: unknown
	state   string
}

// The states of models, as v0 has them.
const (
	stateLoaded    = "loaded"
	stateLoading   = "loading"
	stateNotLoaded = "not-loaded"
)

// entries are the loaded instances, followed by the other models if the settings say so. Instances of remotes are listed once, by the
// model's key: clients ask for what is listed, and a name of one place would keep them from the others.
func (c *call) entries() ([]listEntry, error) {
	models, err := c.modelsToList()
	if err != nil {
		return nil, err
	}
	instances := c.node.Instances()
	entries, others := []listEntry{}, []listEntry{}
	for i := range models {
		m := &models[i]
		isKey := func(in supervisor.Info) bool { return in.ID == m.Key }
		isListed := slices.ContainsFunc(m.Instances, isKey)
		for _, in := range m.Instances {
			e := listEntry{in.ID, m.Model, in.Spec.ContextLength, stateLoaded}
			if in.Spec.Remote != nil {
				if isListed {
					continue
				}
				e.id, e.context, isListed = m.Key, m.ContextLength, true
			}
			entries = append(entries, e)
		}
		if len(m.Instances) == 0 {
			others = append(others, listEntry{m.Key, m.Model, m.ContextLength, stateOf(m.Key, instances)})
		}
	}
	if c.node.Settings().ListAll {
		entries = append(entries, others...)
	}
	return entries, nil
}

// stateOf is the state of the model with a key.
func stateOf(key string, instances []supervisor.Info) string {
	state := stateNotLoaded
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

// getOpenAI is GET /v1/models/{id}.
func (c *call) getOpenAI() error {
	e, err := c.entry()
	if err != nil {
		return err
	}
	return c.answer(e.openAI())
}

// entry is the one that the path names: an instance, or a model whether it is loaded or not.
func (c *call) entry() (*listEntry, error) {
	target, err := c.find(c.param)
	if err != nil {
		return nil, err
	}
	return &listEntry{
		id: cmp.Or(target.Instance, target.Model.Key), model: &target.Model, context: c.node.ContextLength(c.r.Context(), target),
		state: stateOf(target.Model.Key, c.node.Instances()),
	}, nil
}

func (e *listEntry) openAI() openAIModel {
	return openAIModel{
		ID: e.id, Object: "model", Created: e.model.Changed.Unix(), OwnedBy: e.model.Publisher, ContextLength: e.context, MaxModelLen: e.context, State: e.state,
	}
}

func (c *call) answer(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.writeJSON(http.StatusOK, body)
	return nil
}

// orNull is a pointer to v, or nil, which is null in JSON, for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
