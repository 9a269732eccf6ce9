package node

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// LoadOptions is what may be chosen of a load. A zero field is left to the settings; what the engine offers no choice of is
// ignored, see [supervisor.Choices].
type LoadOptions struct {
	ContextLength  int // in tokens; rounded up, and no more than the model's maximum
	BatchSize      int // in tokens
	Experts        int
	FlashAttention supervisor.Toggle
	OffloadKV      supervisor.Toggle
	Draft          string         // a model, by any of its names
	TTL            *time.Duration // 0: never
	Owner          string         // who asked for it, see [Identity]; empty: nobody in particular
	ByHand         bool           // somebody asked for the load itself: it stays until somebody asks for its end
}

// recipe is what a Spec was made of, by which it can be made again under other settings.
type recipe struct {
	settings *Settings
	options  LoadOptions
}

// OwnerOf is who had an instance loaded, see [Identity]; empty: nobody in particular, such as a configuration.
func OwnerOf(in supervisor.Info) string {
	from, _ := in.Spec.Recipe.(recipe)
	return from.options.Owner
}

// madeSpec is a Spec of a model that is loaded on first use. It is made anew when the settings, the memory budget or the
// model's file change.
type madeSpec struct {
	settings *Settings
	budget   int64
	changed  time.Time
	spec     *supervisor.Spec
}

// firstUse is the Spec of a model that is loaded on first use.
func (n *Node) firstUse(ctx context.Context, m *catalog.Model, d Demand) (*supervisor.Spec, error) {
	options := LoadOptions{Draft: d.Draft, Owner: d.Owner}
	if d.ContextLength != 0 {
		options.TTL, options.ContextLength = d.TTL, d.ContextLength
		return n.spec(ctx, *m, options)
	}
	settings, budget, key := n.settings.Load(), n.budget.Load(), m.Key
	if d.Draft != "" {
		key += "\n" + d.Draft
	}
	var spec *supervisor.Spec
	if v, ok := n.specs.Load(key); ok {
		if made := v.(madeSpec); made.settings == settings && made.budget == budget && made.changed.Equal(m.Changed) {
			spec = made.spec
		}
	}
	if spec == nil {
		var err error
		if spec, err = n.spec(ctx, *m, LoadOptions{Draft: d.Draft}); err != nil {
			return nil, err
		}
		n.specs.Store(key, madeSpec{settings, budget, m.Changed, spec})
	}
	if d.TTL != nil || d.Owner != "" { // the one that is remembered is for everybody
		own := *spec
		if d.TTL != nil {
			own.TTL, options.TTL = *d.TTL, d.TTL
		}
		own.Recipe = recipe{settings, options}
		spec = &own
	}
	return spec, nil
}

// spec is what a model is loaded with: what the request says, else the model's settings, else the engine's, else what fits.
// The error is a [*translate.Error] or one of Find's.
func (n *Node) spec(ctx context.Context, m catalog.Model, o LoadOptions) (*supervisor.Spec, error) {
	s := n.settings.Load()
	ms := n.settingsOf(s, m.Key)
	e := n.engineOf(&m)
	es := s.Engines[e.Name]
	spec := &supervisor.Spec{
		Engine: e.Name,
		Model:  m,
		Args:   slices.Concat(es.Args, ms.Args),

		Private:     s.PrivatePrompts && m.Type == catalog.TypeLLM,
		Unconfined:  es.Unconfined,
		Readable:    es.Readable,
		Pinned:      ms.Pinned,
		AutoRestart: o.ByHand || ms.Pinned || ms.Preload,
		TTL:         timeToLive(s, ms, o),
		Recipe:      recipe{s, o},
	}
	o.Draft = cmp.Or(o.Draft, ms.Draft)
	if err := n.choose(ctx, spec, e.choices(&m), o); err != nil {
		return nil, err
	}
	n.size(spec, cmp.Or(o.ContextLength, ms.ContextLength), cmp.Or(ms.Parallel, es.Parallel))
	return spec, nil
}

// choose takes over the options that the engine has for the model. The error is that of spec.
func (n *Node) choose(ctx context.Context, spec *supervisor.Spec, can supervisor.Choices, o LoadOptions) error {
	if can.BatchSize {
		spec.BatchSize = o.BatchSize
	}
	if can.FlashAttention {
		spec.FlashAttention = o.FlashAttention
	}
	if can.OffloadKV {
		spec.OffloadKV = o.OffloadKV
	}
	if can.Experts {
		if err := checkExperts(spec.Model, o.Experts); err != nil {
			return err
		}
		spec.Experts = o.Experts
	}
	if can.Draft {
		draft, err := n.draft(ctx, spec.Model, o.Draft)
		if err != nil {
			return err
		}
		spec.Draft = draft
	}
	return nil
}

// timeToLive is how long an instance may be idle. What was loaded by hand or is to stay has no limit, unless the model's own
// setting gives one.
func timeToLive(s *Settings, ms ModelSettings, o LoadOptions) time.Duration {
	switch {
	case o.TTL != nil:
		return *o.TTL
	case ms.TTL != nil:
		return *ms.TTL
	case o.ByHand || ms.Pinned || ms.Preload:
		return 0
	default:
		return s.IdleTTL
	}
}
