package node

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
)

// LoadOptions are options for loading a model. A zero field is left to the settings; options that the engine doesn't offer
// are ignored, see [process.Choices].
type LoadOptions struct {
	ID             string // of the instance; empty: the key, or key:2 and so on
	ContextLength  int    // in tokens; rounded up, and limited to the model's maximum
	Parallel       int    // concurrent requests
	BatchSize      int    // in tokens
	Experts        int
	FlashAttention schedule.Toggle
	OffloadKV      schedule.Toggle
	Draft          string         // the draft model, by any of its names
	TTL            *time.Duration // 0: never
	Owner          string         // see [access.Identity]; empty: none
	Pinned         *bool          // never evicted
	ByHand         bool           // explicitly requested: it stays loaded until it is unloaded explicitly
}

// recipe is what a Spec was made from, so that it can be made again under other settings.
type recipe struct {
	settings *Settings
	options  LoadOptions
	cold     bool // no states of its prompts are kept
}

// OwnerOf returns the owner whose request loaded an instance, see [access.Identity]; empty if it has none, for example because it
// was preloaded.
func OwnerOf(in supervisor.Info) string {
	from, _ := in.Spec.Recipe.(recipe)
	return from.options.Owner
}

// IsParallelGiven reports whether the load of an instance chose its number of concurrent requests.
func IsParallelGiven(in supervisor.Info) bool {
	from, _ := in.Spec.Recipe.(recipe)
	return from.options.Parallel > 0
}

// basis is what the Spec of a model that is loaded on first use depends on, besides the request.
type basis struct {
	settings *Settings
	budget   int64
	devices  *foundDevices
	changed  int64 // when the model's file did, in nanoseconds
}

func (n *Node) basisOf(m *catalog.Model) basis {
	return basis{n.settings.Load(), n.budget.Load(), n.devices.Load(), m.Changed.UnixNano()}
}

// madeSpec is a cached Spec, valid as long as the basis is the same.
type madeSpec struct {
	basis
	spec *schedule.Spec
}

// Reserve reserves tokens of the identity's daily limit for a request to a model; see [access.Quota.Reserve].
func (n *Node) Reserve(
	ctx context.Context, who *access.Identity, m *catalog.Model, d Demand, need access.Need,
) (each int, done func(), _ error) {
	length := 0
	if who.HasDailyLimit() {
		spec, err := n.firstUse(ctx, m, d)
		if err != nil {
			return 0, nil, err
		}
		length = spec.ContextLength
		for _, in := range n.supervisor.Instances() {
			if in.Spec.Model.Key == m.Key {
				length = max(length, in.Spec.ContextLength)
			}
		}
	}
	return n.Access.Quota.Reserve(ctx, who, need, length)
}

// firstUse returns the Spec of a model that is loaded on first use.
func (n *Node) firstUse(ctx context.Context, m *catalog.Model, d Demand) (*schedule.Spec, error) {
	if n.hasLost() && !slices.ContainsFunc(n.Instances(), func(in supervisor.Info) bool { return in.Spec.Model.Key == m.Key }) {
		n.seekLost()
	}
	options := LoadOptions{Draft: d.Draft, Owner: d.Owner}
	if d.ContextLength != 0 {
		options.TTL, options.ContextLength = d.TTL, d.ContextLength
		return n.spec(ctx, *m, options)
	}
	now, key := n.basisOf(m), m.Key
	if d.Draft != "" {
		key += "\n" + d.Draft
	}
	var spec *schedule.Spec
	if v, ok := n.specs.Load(key); ok {
		if made := v.(madeSpec); made.basis == now {
			spec = made.spec
		}
	}
	if spec == nil {
		var err error
		if spec, err = n.spec(ctx, *m, LoadOptions{Draft: d.Draft}); err != nil {
			return nil, err
		}
		n.specs.Store(key, madeSpec{now, spec})
	}
	if d.TTL != nil || d.Owner != "" { // the cached one is shared
		own := *spec
		if d.TTL != nil {
			own.TTL, options.TTL = *d.TTL, d.TTL
		}
		from, _ := own.Recipe.(recipe)
		from.options = options
		own.Recipe = from
		spec = &own
	}
	return spec, nil
}

// spec returns the Spec to load a model with. Each value comes from the request, else from the model's settings, else from
// the engine's, else it is chosen so that the model fits. The error is a [*translate.Error] or one of Find's.
func (n *Node) spec(ctx context.Context, m catalog.Model, o LoadOptions) (*schedule.Spec, error) {
	s := n.settings.Load()
	ms := n.settingsOf(s, m.Key)
	if o.Pinned != nil {
		ms.Pinned = *o.Pinned
	}
	if m.IsRemote {
		return &schedule.Spec{Model: m, Parallel: 1, Remote: new(schedule.Remote)}, nil
	}
	e := n.engineOf(&m)
	if err := e.runs(&m); err != nil {
		return nil, translate.Invalid("unsupported_model", "model", err.Error())
	}
	es := s.Engines[e.Name]
	spec := &schedule.Spec{
		Engine: e.Name,
		Model:  m,
		Args:   slices.Concat(es.Args, ms.Args),

		Slotted:     e.isSlotted(&m) && !e.fixed(slices.Concat(es.Args, ms.Args)).Slots,
		Private:     s.PrivatePrompts && m.Type == catalog.TypeLLM,
		NoSandbox:   e.NoSandbox,
		Readable:    es.Readable,
		Pinned:      ms.Pinned,
		ID:          o.ID,
		AutoRestart: o.ByHand || ms.Pinned || ms.Preload,
		TTL:         timeToLive(s, ms, o),
		Recipe:      recipe{s, o, s.isCold(ms)},
	}
	if err := n.place(ctx, spec, e, ms); err != nil {
		return nil, err
	}
	o.Draft = cmp.Or(o.Draft, ms.Draft)
	if err := n.choose(ctx, spec, e.choices(&m), o); err != nil {
		return nil, err
	}
	n.size(spec, cmp.Or(o.ContextLength, ms.ContextLength), cmp.Or(o.Parallel, ms.Parallel, es.Parallel))
	return spec, nil
}

// choose copies the options that the engine offers for the model to the Spec. The errors are those of spec.
func (n *Node) choose(ctx context.Context, spec *schedule.Spec, can process.Choices, o LoadOptions) error {
	if can.BatchSize && o.BatchSize > 0 {
		spec.BatchSize = max(o.BatchSize, can.LeastBatch)
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

// timeToLive returns how long an instance may be idle; 0: unlimited. A model that was loaded by hand, is pinned or is
// preloaded has no limit unless its own settings give one.
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
