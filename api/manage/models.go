package manage

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
)

// listModels is GET /api/v1/models.
func listModels(c *endpoint.Call) error {
	models, err := c.ModelsToList()
	if err != nil {
		return err
	}
	isPlain := func(m *node.ModelState) bool {
		return len(m.Instances) == 0 && len(m.Places) == 0 && len(m.Aliases) == 0 && m.Lacks == ""
	}
	pieces, err := c.Site.Encoded.Of(models, isPlain, func(m *node.ModelState) any { return describeModel(m) })
	if err != nil {
		return err
	}
	broken, err := brokenMember(c)
	if err != nil {
		return err
	}
	pieces[0] = []byte(`{"models":[`)
	endpoint.WritePieces(c, http.StatusOK, append(pieces, append(append([]byte{']'}, broken...), '}')))
	return nil
}

// brokenMember returns the member with the models whose files are unusable, after a comma, if there are any.
func brokenMember(c *endpoint.Call) ([]byte, error) {
	all, err := c.Node.Broken(c.Request.Context())
	if err != nil {
		return nil, err
	}
	var broken []resource.Broken
	hide := c.Node.HidePaths
	for _, m := range all {
		if c.Identity.MayUse(m.FullKey()) {
			broken = append(broken, resource.Broken{Key: m.Key, Path: hide(c.Node.ShortPath(m.Path)), Error: hide(m.Err.Error())})
		}
	}
	if len(broken) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(broken)
	return append([]byte(`,"broken":`), text...), err
}

func describeModel(m *node.ModelState) resource.Model {
	d := DescribeModel(m.Model)
	d.Aliases, d.Via, d.EngineProblem, d.ContextLength = m.Aliases, viaOf(m), m.Lacks, m.ContextLength
	for _, in := range m.Places {
		on := in.Spec.Remote
		d.Places = append(d.Places, resource.Place{Remote: on.Name, Instance: in.ID, Loaded: on.Loaded, Reachable: in.Away == ""})
	}
	for _, in := range m.Instances {
		d.Instances = append(d.Instances, resource.Instance{ID: in.ID, Config: configOf(in, m.Choices)})
	}
	return d
}

// DescribeModel returns what the native API says of a model that isn't loaded and has no aliases.
func DescribeModel(m *catalog.Model) resource.Model {
	d := resource.Model{
		Type: string(m.Type), Publisher: m.Publisher, Key: m.Key, DisplayName: m.DisplayName, SizeBytes: m.SizeBytes,
		Quantization: &resource.Quantization{Name: orNull(m.Quantization.Name), Bits: orNull(m.Quantization.BitsPerWeight)},
		Params:       orNull(m.ParamsString()), Instances: []resource.Instance{}, MaxContextLength: m.MaxContextLength,
		Format: resource.Word(m.Format),
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

// orNull is a pointer to v, or nil, which is null in JSON, for the zero value.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// viaOf returns the ids of the servers that every request to a model passes after this one, so that they don't list it, too.
func viaOf(m *node.ModelState) (via []string) {
	if !m.IsRemote || len(m.Places) == 0 {
		return nil
	}
	via = slices.Clone(m.Places[0].Spec.Remote.Via)
	for i := range m.Places[1:] {
		other := m.Places[1+i].Spec.Remote.Via
		via = slices.DeleteFunc(via, func(id string) bool { return !slices.Contains(other, id) })
	}
	return via
}
