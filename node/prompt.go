package node

import (
	"cmp"
	"context"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
)

type longestToken struct {
	changed time.Time
	bytes   int
}

// LeastTokens returns the minimum number of tokens of a prompt of the given number of bytes, and the longest context that
// it can get. Both are 0 if unknown. The errors are those of [Loads.Acquire] for a model that can't be loaded.
func (ld *Loads) LeastTokens(ctx context.Context, t Target, d Demand, bytes int) (least, limit int, _ error) {
	if t.Model.IsRemote {
		return 0, 0, nil
	}
	longest := ld.longestToken(t.Model)
	if longest == 0 {
		return 0, 0, nil
	}
	limit, known := ld.longestContext(t)
	if !known {
		return 0, 0, nil
	}
	if t.Instance == "" {
		spec, err := ld.firstUse(ctx, &t.Model, d)
		if err != nil {
			return 0, 0, err
		}
		if ld.engines.byName[spec.Engine].fixed(spec.Args).Context {
			return 0, 0, nil
		}
		limit = max(limit, spec.ContextLength)
	}
	return (bytes + longest - 1) / longest, limit, nil
}

// longestContext returns the longest context of a target's instances, in tokens. It is unknown if an argument overrides one of them.
func (ld *Loads) longestContext(t Target) (longest int, known bool) {
	for _, in := range ld.instancesOf(t.Model.Key) {
		if t.Instance != "" && in.ID != t.Instance {
			continue
		}
		if in.Spec.Remote != nil && in.Spec.ContextLength == 0 || ld.engines.ofSpec(in.Spec).fixed(in.Spec.Args).Context {
			return 0, false
		}
		longest = max(longest, in.Spec.ContextLength)
	}
	return longest, true
}

// longestToken returns the bytes of the model's longest token, or 0. It is cached, since reading the file takes milliseconds.
func (ld *Loads) longestToken(m catalog.Model) int {
	if v, ok := ld.longest.Load(m.Key); ok {
		if known := v.(longestToken); known.changed.Equal(m.Changed) {
			return known.bytes
		}
	}
	bytes, err := catalog.LongestToken(m)
	if err != nil {
		return 0 // loading will report it
	}
	ld.longest.Store(m.Key, longestToken{m.Changed, bytes})
	return bytes
}

// Forecast is what a load would take and do if it were requested now.
type Forecast struct {
	Spec    *schedule.Spec // what would be loaded, in full size
	Choices process.Choices
	Batch   int // tokens of a prompt that are evaluated at a time; 0: unknown
	Outlook schedule.Outlook

	Parts catalog.Memory // the parts of Spec.Memory that the engine's estimate has, without the draft model; zero if there is none
	Draft int64          // bytes that the draft model takes
	Rough bool           // the estimate is a guess
}

// Forecast returns what a load of a model would take and do. It loads nothing. The errors are those of Load.
func (ld *Loads) Forecast(ctx context.Context, m catalog.Model, o LoadOptions) (Forecast, error) {
	if m.IsRemote {
		return Forecast{}, translate.Invalid("not_supported", "model",
			"The model "+m.Key+" is on a remote: what a load takes there isn't known.")
	}
	o.ByHand = true
	if err := ld.names.checkID(o.ID, m.Key); err != nil {
		return Forecast{}, err
	}
	ld.devices.seekLost()
	spec, err := ld.spec(ctx, m, o)
	if err != nil {
		return Forecast{}, err
	}
	e := ld.engines.byName[spec.Engine]
	f := Forecast{Spec: spec, Choices: e.choices(&spec.Model), Rough: true}
	if b, ok := e.process.(process.Batcher); ok {
		f.Batch = b.BatchSize(spec)
	}
	if e.Estimate != nil {
		if f.Parts, err = e.Estimate(spec); err == nil {
			f.Rough = f.Parts.Rough
		}
	}
	if spec.Draft != nil {
		f.Draft = ld.memoryOf(&schedule.Spec{
			Engine: spec.Engine, Model: *spec.Draft,
			ContextLength: spec.ContextLength, Parallel: spec.Parallel,
		}).total
	}
	f.Outlook = ld.supervisor.Outlook(spec)
	return f, nil
}

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
