package node

import (
	"cmp"
	"context"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// madeContext is the cached context of a model that is loaded on first use, valid as long as the basis is the same.
type madeContext struct {
	basis
	length int
}

// contextsFor is how long a listing may work out contexts. Each takes the reading of a model's header.
const contextsFor = 500 * time.Millisecond

// ContextLength returns the context that a request to a target gets now, in tokens: that of the instance, or the longest of the model's instances,
// or else that of the load which the request would cause. Clients cut their prompts to it. 0: unknown, as of some remotes' models.
func (n *Node) ContextLength(ctx context.Context, t Target) int {
	if length := longestOf(n.supervisor.Instances(), t); length > 0 {
		return length
	}
	return n.contextOfLoad(ctx, &t.Model, true)
}

// SetContexts sets the ContextLength of models, as of [Node.ContextLength]. If there are too many models to work all out at once, that of the others
// is what they get unless memory is short.
func (n *Node) SetContexts(ctx context.Context, models []ModelState) {
	isLooking, deadline := n.devices.Load() != nil, time.Now().Add(contextsFor)
	for i := range models {
		m := &models[i]
		t := Target{Model: *m.Model}
		if m.ContextLength = max(longestOf(m.Instances, t), longestOf(m.Places, t)); m.ContextLength == 0 {
			m.ContextLength = n.contextOfLoad(ctx, m.Model, isLooking && time.Now().Before(deadline))
		}
	}
}

// longestOf returns the longest context of the instances that serve a target; 0 if none does.
func longestOf(instances []supervisor.Info, t Target) (longest int) {
	for i := range instances {
		in := &instances[i]
		if in.Spec.Model.Key == t.Model.Key && (t.Instance == "" && !in.Status.IsLeaving() || in.ID == t.Instance) {
			longest = max(longest, in.Spec.ContextLength)
		}
	}
	return longest
}

// contextOfLoad returns the context that a model is loaded with on first use. Unless it may be worked out, it is only the settings' or the default,
// which memory may be too short for.
func (n *Node) contextOfLoad(ctx context.Context, m *catalog.Model, mayRead bool) int {
	if m.IsRemote {
		return m.MaxContextLength
	}
	now := n.basisOf(m)
	if v, ok := n.contexts.Load(m.Key); ok {
		if made := v.(madeContext); made.basis == now {
			return made.length
		}
	}
	if mayRead {
		if spec, err := n.spec(ctx, *m, LoadOptions{}); err == nil {
			n.contexts.Store(m.Key, madeContext{n.basisOf(m), spec.ContextLength})
			return spec.ContextLength
		}
	}
	e := n.engineOf(m)
	if !e.choices(m).ContextLength {
		return cmp.Or(m.MaxContextLength, defaultContext)
	}
	return e.contextLength(cmp.Or(n.settingsOf(now.settings, m.Key).ContextLength, defaultContext), m.MaxContextLength)
}
