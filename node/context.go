package node

import (
	"cmp"
	"context"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

const contextsFor = 500 * time.Millisecond // how long a listing may work out contexts. Each takes the reading of a model's header.

// ContextLength returns the context that a request to a target gets now, in tokens: that of the instance, or the longest of the model's
// instances, or else that of the load which the request would cause. Clients cut their prompts to it. 0: unknown, as of some remotes'
// models.
func (ld *Loads) ContextLength(ctx context.Context, t Target) int {
	if length := longestOf(ld.supervisor.Instances(), t.Model.Key, t.Instance); length > 0 {
		return length
	}
	return ld.contextOfLoad(ctx, &t.Model, true)
}

// SetContexts sets the ContextLength of models, as of [Loads.ContextLength]. If there are too many models to work all out at once, that of
// the others is what they get unless memory is short, until the next time.
func (ld *Loads) SetContexts(ctx context.Context, models []ModelState) {
	mayRead, deadline := ld.devices.found.Load() != nil, time.Now().Add(contextsFor)
	for i := range models {
		m := &models[i]
		if m.ContextLength = max(longestOf(m.Instances, m.Key, ""), longestOf(m.Places, m.Key, "")); m.ContextLength == 0 {
			m.ContextLength = ld.contextOfLoad(ctx, m.Model, mayRead && time.Now().Before(deadline))
		}
	}
}

// longestOf returns the longest context of the instances of the model with a key, or that of the instance with an id; 0 if there is none.
func longestOf(instances []supervisor.Info, key, id string) (longest int) {
	for i := range instances {
		in := &instances[i]
		if in.Spec.Model.Key == key && (id == "" && !in.Status.IsLeaving() || in.ID == id) {
			longest = max(longest, in.Spec.ContextLength)
		}
	}
	return longest
}

// contextOfLoad returns the context that a model is loaded with on first use. Without mayRead, that is what it gets unless memory is short.
func (ld *Loads) contextOfLoad(ctx context.Context, m *catalog.Model, mayRead bool) int {
	if m.IsRemote {
		return m.MaxContextLength
	}
	spec := ld.cached(m, "")
	if spec == nil && mayRead {
		spec, _ = ld.usual(ctx, m, "")
	}
	if spec != nil {
		return spec.ContextLength
	}
	e := ld.engines.of(m)
	if !e.choices(m).ContextLength {
		return cmp.Or(m.MaxContextLength, defaultContext)
	}
	return e.contextLength(cmp.Or(ld.names.settingsOf(ld.settings.Load(), m.Key).ContextLength, defaultContext), m.MaxContextLength)
}
