package manage

import (
	"cmp"
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
		d.Capabilities = &resource.Capabilities{Vision: m.Vision, Audio: m.Audio, ToolUse: m.ToolUse}
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

// showModel is GET /api/v1/models/{key}: all that is known of a model, by any of its names.
func showModel(c *endpoint.Call) error {
	target, err := c.Find(c.Param)
	if err != nil {
		return err
	}
	m := &target.Model
	details, err := c.Node.Details(m)
	if err != nil {
		return err
	}
	models, err := c.Models()
	if err != nil {
		return err
	}
	d := resource.ModelDetails{Model: DescribeModel(m)}
	for i := range models {
		if models[i].Key == m.Key {
			models[i].ContextLength = c.Node.Loads.ContextLength(c.Request.Context(), node.Target{Model: *m})
			d.Model = describeModel(&models[i])
		}
	}
	addDetails(c, &d, m, &details)
	if d.Companions, err = companions(c, func(p *catalog.Companion) bool {
		isLoaded := slices.ContainsFunc(details.Files, func(f catalog.ModelFile) bool { return f.Path == p.Path })
		return slices.Contains(p.Of, m.Key) && !isLoaded
	}); err != nil {
		return err
	}
	if m.IsRemote {
		return c.Answer(d)
	}
	switch f, err := c.Node.Loads.Forecast(c.Request.Context(), *m, node.LoadOptions{}); {
	case err == nil:
		d.Load = new(loadEstimate(c, &f, node.LoadOptions{}))
	case c.IsRestricted():
		d.LoadError = "The model can't be loaded as it is configured. An administrator can see why." // the reason may name other models
	default:
		d.LoadError = c.Error(err).Message
	}
	return c.Answer(d)
}

// listCompanions is GET /api/v1/models/companions. No list of models has these files.
func listCompanions(c *endpoint.Call) error {
	all, err := companions(c, func(*catalog.Companion) bool { return true })
	if err != nil {
		return err
	}
	return c.Answer(resource.Companions{Companions: append([]resource.Companion{}, all...)})
}

// companions describes those companions that the request's identity may use, and that are wanted.
func companions(c *endpoint.Call, wanted func(*catalog.Companion) bool) (all []resource.Companion, _ error) {
	found, err := c.Node.Companions(c.Request.Context())
	for i := range found {
		p := &found[i]
		if !c.Identity.MayUse(p.Key) || !wanted(p) {
			continue
		}
		all = append(all, resource.Companion{
			Key: p.Key, Role: p.Role, Path: c.Node.HidePaths(c.Node.ShortPath(p.Path)), SizeBytes: p.SizeBytes,
			Models: slices.DeleteFunc(append([]string{}, p.Of...), func(key string) bool { return !c.Identity.MayUse(key) }),
		})
	}
	return all, err
}

func addDetails(c *endpoint.Call, d *resource.ModelDetails, m *catalog.Model, more *node.ModelDetails) {
	d.Parameters, d.Vocabulary = orNull(m.Parameters), orNull(m.Vocabulary)
	d.Embeddings, d.Reranker = m.Type == catalog.TypeEmbedding && !m.Reranker, m.Reranker
	if m.Experts > 0 {
		d.Experts = &resource.Experts{Total: m.Experts, Used: m.ExpertsUsed}
	}
	d.Files = []resource.ModelFile{}
	for _, f := range more.Files {
		d.Files = append(d.Files, resource.ModelFile{Path: c.Node.HidePaths(c.Node.ShortPath(f.Path)), SizeBytes: f.Size, Role: f.Role})
	}
	d.ChatTemplate = orNull(more.ChatTemplate)
	if l := more.License; l != (catalog.License{}) {
		d.License = &resource.License{ID: l.ID, Name: l.Name, URL: l.URL}
	}
	d.Author, d.QuantizedBy, d.BaseModel = orNull(more.Author), orNull(more.QuantizedBy), orNull(more.BaseModel)
	d.Source, d.Revision = orNull(cmp.Or(more.Page, more.Source)), orNull(more.Revision)
	s := more.Settings
	d.Engine = more.Engine
	d.Settings = resource.ModelSettings{
		Configured: more.Configured, ContextLength: orNull(s.ContextLength), Parallel: orNull(s.Parallel),
		TTL: c.Node.Loads.LongestTTL(m.Key).Seconds(), Preload: s.Preload, Pinned: s.Pinned, Warm: more.IsWarm,
	}
	if _, err := c.FindDraft(m.Key, s.Draft); s.Draft != "" && (err == nil || !c.IsRestricted()) {
		d.Settings.Draft = &s.Draft
	}
	if c.IsAdmin() {
		d.Settings.Args = s.Args
	}
}
