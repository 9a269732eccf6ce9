package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/remotes"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
)

// Loads decides how models are loaded, and loads them.
type Loads struct {
	*base
	names    *Names
	engines  *Engines
	devices  *Devices
	remotes  *remotes.Remotes
	access   *access.Access
	specs    sync.Map   // key to madeSpec
	longest  sync.Map   // key to longestToken
	applying sync.Mutex // held while new settings are applied
}

// LoadOptions are options for a load. A zero field is left to the settings; [process.Choices] that there aren't are ignored.
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

// OwnerOf returns the owner whose request loaded an instance, see [access.Identity]; empty if it was preloaded, for example.
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

func (ld *Loads) basisOf(m *catalog.Model) basis {
	return basis{ld.settings.Load(), ld.devices.budget.Load(), ld.devices.found.Load(), m.Changed.UnixNano()}
}

type madeSpec struct {
	basis
	spec *schedule.Spec
}

// Reserve reserves tokens of the identity's daily limit for a request to a model; see [access.Quota.Reserve].
func (ld *Loads) Reserve(
	ctx context.Context, who *access.Identity, m *catalog.Model, d Demand, need access.Need,
) (each int, done func(), _ error) {
	length := 0
	if who.HasDailyLimit() {
		spec, err := ld.firstUse(ctx, m, d)
		if err != nil {
			return 0, nil, err
		}
		length = spec.ContextLength
		for _, in := range ld.instancesOf(m.Key) {
			length = max(length, in.Spec.ContextLength)
		}
	}
	return ld.access.Quota.Reserve(ctx, who, need, length)
}

func (ld *Loads) firstUse(ctx context.Context, m *catalog.Model, d Demand) (*schedule.Spec, error) {
	if ld.devices.hasLost() && len(ld.instancesOf(m.Key)) == 0 {
		ld.devices.seekLost()
	}
	options := LoadOptions{Draft: d.Draft, Owner: d.Owner, TTL: d.TTL, ContextLength: d.ContextLength}
	if d.ContextLength != 0 {
		return ld.spec(ctx, *m, options)
	}
	spec, err := ld.usual(ctx, m, d.Draft)
	if err == nil && (d.TTL != nil || d.Owner != "") { // the cached one is shared
		own := *spec
		if d.TTL != nil {
			own.TTL = *d.TTL
		}
		from, _ := own.Recipe.(recipe)
		from.options = options
		own.Recipe = from
		spec = &own
	}
	return spec, err
}

// usual returns the Spec of a model and a draft model, where the request chooses nothing else.
func (ld *Loads) usual(ctx context.Context, m *catalog.Model, draft string) (*schedule.Spec, error) {
	if spec := ld.cached(m, draft); spec != nil {
		return spec, nil
	}
	now := ld.basisOf(m)
	spec, err := ld.spec(ctx, *m, LoadOptions{Draft: draft})
	if err == nil {
		ld.specs.Store(m.Key+"\n"+draft, madeSpec{now, spec})
	}
	return spec, err
}

func (ld *Loads) cached(m *catalog.Model, draft string) *schedule.Spec {
	v, _ := ld.specs.Load(m.Key + "\n" + draft)
	if made, ok := v.(madeSpec); ok && made.basis == ld.basisOf(m) {
		return made.spec
	}
	return nil
}

// spec returns the Spec to load a model with. Each value comes from the request, else from the model's settings, else from
// the engine's, else it is chosen so that the model fits. The error is a [*translate.Error] or one of Find's.
func (ld *Loads) spec(ctx context.Context, m catalog.Model, o LoadOptions) (*schedule.Spec, error) {
	s := ld.settings.Load()
	ms := ld.names.settingsOf(s, m.Key)
	if o.Pinned != nil {
		ms.Pinned = *o.Pinned
	}
	if m.IsRemote {
		return &schedule.Spec{Model: m, Parallel: 1, Remote: new(schedule.Remote)}, nil
	}
	e := ld.engines.of(&m)
	if err := e.runs(&m); err != nil {
		return nil, translate.Invalid("unsupported_model", "model", err.Error())
	}
	es := s.Engines[e.Name]
	args := slices.Concat(es.Args, ms.Args)
	spec := &schedule.Spec{
		ID: o.ID, Engine: e.Name, Model: m, Args: args, NoSandbox: e.NoSandbox, Readable: es.Readable, Pinned: ms.Pinned,
		Slotted: e.isSlotted(&m) && !e.fixed(args).Slots, Private: s.PrivatePrompts && m.Type == catalog.TypeLLM,
		AutoRestart: o.ByHand || ms.Pinned || ms.Preload, TTL: timeToLive(s, ms, o), Recipe: recipe{s, o, s.isCold(ms)},
	}
	if e.choices(&m).Adapters && !e.fixed(args).Adapters {
		// The engine takes a comma in a path for the beginning of another.
		spec.Adapters = slices.DeleteFunc(ld.catalog.Adapters(&m), func(a catalog.Model) bool { return strings.Contains(a.Path, ",") })
	}
	if err := ld.place(ctx, spec, e, ms); err != nil {
		return nil, err
	}
	o.Draft = cmp.Or(o.Draft, ms.Draft)
	if err := ld.choose(ctx, spec, e.choices(&m), o); err != nil {
		return nil, err
	}
	context, parallel := cmp.Or(o.ContextLength, ms.ContextLength), cmp.Or(o.Parallel, ms.Parallel, es.Parallel)
	ld.size(spec, context, parallel)
	if p, ok := e.process.(process.Predictor); ok && o.Draft == "" && !e.fixed(args).Draft && p.Predicts(&m) {
		drafting := *spec
		drafting.SelfDraft, drafting.Smaller = schedule.HeadsDraft, nil
		if ld.size(&drafting, context, parallel) && drafting.ContextLength == spec.ContextLength && drafting.Parallel == spec.Parallel {
			return &drafting, nil
		}
	}
	return spec, nil
}

// choose copies the options that the engine offers for the model to the Spec. The errors are those of spec.
func (ld *Loads) choose(ctx context.Context, spec *schedule.Spec, can process.Choices, o LoadOptions) error {
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
		if most := spec.Model.Experts; o.Experts != 0 && most > 0 && (o.Experts < 1 || o.Experts > most) {
			return translate.BadValue("num_experts", "must be between 1 and %d, the number of experts of %s.", most, spec.Model.Key)
		}
		spec.Experts = o.Experts
	}
	if can.Draft {
		if spec.SelfDraft = selfDraft(o.Draft); spec.SelfDraft == schedule.HeadsDraft && spec.Model.Heads == 0 {
			return translate.Invalid("invalid_value", "draft_model",
				spec.Model.Key+
					" has no layers that predict several tokens: leave the option draft_model of its block out, or name a model in it.")
		}
		if spec.SelfDraft != "" || o.Draft == draftOff {
			return nil
		}
		draft, err := ld.draft(ctx, spec.Model, o.Draft)
		if err != nil {
			return err
		}
		spec.Draft = draft
	}
	return nil
}

// draftOff in place of a draft model keeps a model from drafting for itself.
const draftOff = "off"

// selfDraft returns the [schedule.Spec.SelfDraft] that the settings name in place of a draft model; empty: they name a model, or "off".
func selfDraft(name string) string {
	switch {
	case name == "mtp":
		return schedule.HeadsDraft
	case strings.HasPrefix(name, "ngram-"):
		return name
	default:
		return ""
	}
}

// timeToLive returns how long an instance may be idle; 0: unlimited, as for one that is wanted by hand, pinned or preloaded.
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

// draft returns the draft model named for a model, if their vocabularies match; nil without a name. Errors: a [*translate.Error] or Find's.
func (ld *Loads) draft(ctx context.Context, m catalog.Model, name string) (*catalog.Model, error) {
	if name == "" {
		return nil, nil
	}
	target, err := ld.names.FindDraft(ctx, m.Key, name)
	if err != nil {
		return nil, err
	}
	if target.Model.Drafting != "" {
		return &target.Model, nil // it has no vocabulary of its own, or the engine maps it
	}
	if target.Model.Key == m.Key {
		return nil, translate.Invalid("invalid_value", "draft_model",
			fmt.Sprintf("%s can't draft for itself: name a smaller model of the same family.", m.Key))
	}
	if err := catalog.SameVocabulary(m, target.Model); err != nil {
		if differ, ok := errors.AsType[*catalog.VocabularyError](err); ok {
			return nil, translate.Invalid("invalid_value", "draft_model", differ.Error())
		}
		return nil, &BrokenModelError{target.Model.Key, target.Model.Path, err}
	}
	return &target.Model, nil
}
