package api

import (
	"slices"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
)

// showModel is GET /api/v1/models/{key}: all that is known of a model, by any of its names.
func (c *call) showModel() error {
	target, err := c.find(c.param)
	if err != nil {
		return err
	}
	m := &target.Model
	details, err := c.node.Details(m)
	if err != nil {
		return err
	}
	models, err := c.models()
	if err != nil {
		return err
	}
	d := resource.ModelDetails{Model: DescribeModel(m)}
	for i := range models {
		if models[i].Key == m.Key {
			models[i].ContextLength = c.node.ContextLength(c.r.Context(), node.Target{Model: *m})
			d.Model = describe(&models[i])
		}
	}
	c.addDetails(&d, m, &details)
	if d.Companions, err = c.companions(func(p *catalog.Companion) bool {
		isLoaded := slices.ContainsFunc(details.Files, func(f catalog.ModelFile) bool { return f.Path == p.Path })
		return slices.Contains(p.Of, m.Key) && !isLoaded
	}); err != nil {
		return err
	}
	if m.IsRemote {
		return c.answer(d)
	}
	switch f, err := c.node.Forecast(c.r.Context(), *m, node.LoadOptions{}); {
	case err == nil:
		d.Load = new(c.loadEstimate(&f, node.LoadOptions{}))
	case c.isRestricted():
		d.LoadError = "The model can't be loaded as it is configured. An administrator can see why." // the reason may name other models
	default:
		d.LoadError = c.asError(err).Message
	}
	return c.answer(d)
}

// listCompanions is GET /api/v1/models/companions. No list of models has these files.
func (c *call) listCompanions() error {
	all, err := c.companions(func(*catalog.Companion) bool { return true })
	if err != nil {
		return err
	}
	return c.answer(resource.Companions{Companions: append([]resource.Companion{}, all...)})
}

// companions describes those companions that the request's identity may use, and that are wanted.
func (c *call) companions(wanted func(*catalog.Companion) bool) (all []resource.Companion, _ error) {
	found, err := c.node.Companions(c.r.Context())
	for i := range found {
		p := &found[i]
		if !c.who.MayUse(p.Key) || !wanted(p) {
			continue
		}
		all = append(all, resource.Companion{
			Key: p.Key, Role: p.Role, Path: c.node.HidePaths(c.node.ShortPath(p.Path)), SizeBytes: p.SizeBytes,
			Models: slices.DeleteFunc(append([]string{}, p.Of...), func(key string) bool { return !c.who.MayUse(key) }),
		})
	}
	return all, err
}

func (c *call) addDetails(d *resource.ModelDetails, m *catalog.Model, more *node.ModelDetails) {
	d.Parameters, d.Vocabulary = orNull(m.Parameters), orNull(m.Vocabulary)
	d.Embeddings, d.Reranker = m.Type == catalog.TypeEmbedding && !m.Reranker, m.Reranker
	if m.Experts > 0 {
		d.Experts = &resource.Experts{Total: m.Experts, Used: m.ExpertsUsed}
	}
	d.Files = []resource.ModelFile{}
	for _, f := range more.Files {
		d.Files = append(d.Files, resource.ModelFile{Path: c.node.HidePaths(c.node.ShortPath(f.Path)), SizeBytes: f.Size, Role: f.Role})
	}
	d.ChatTemplate = orNull(more.ChatTemplate)
	if l := more.License; l != (catalog.License{}) {
		d.License = &resource.License{ID: l.ID, Name: l.Name, URL: l.URL}
	}
	d.Author, d.QuantizedBy, d.BaseModel = orNull(more.Author), orNull(more.QuantizedBy), orNull(more.BaseModel)
	d.Source, d.Revision = orNull(more.Page), orNull(more.Revision)
	if d.Source == nil {
		d.Source = orNull(more.Source)
	}
	s := more.Settings
	d.Engine = more.Engine
	d.Settings = resource.ModelSettings{
		Configured: more.Configured, ContextLength: orNull(s.ContextLength), Parallel: orNull(s.Parallel), TTL: c.node.LongestTTL(m.Key).Seconds(),
		Preload: s.Preload, Pinned: s.Pinned, Warm: more.IsWarm,
	}
	if _, err := c.findDraft(m.Key, s.Draft); s.Draft != "" && (err == nil || !c.isRestricted()) {
		d.Settings.Draft = &s.Draft
	}
	if c.isAdmin() {
		d.Settings.Args = s.Args
	}
}
