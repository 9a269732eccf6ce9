package node

import (
	"context"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
)

// Forecast is what a load would take and do if it were requested now.
type Forecast struct {
	Spec    *schedule.Spec // what would be loaded, in full size
	Choices process.Choices
	Batch   int // tokens of a prompt that are evaluated at a time; 0: unknown
	Outlook schedule.Outlook

	// Parts are the parts of Spec.Memory that the engine's estimate has, without the draft model; zero if there is none.
	Parts catalog.Memory
	Draft int64 // bytes that the draft model takes
	Rough bool  // the estimate is a guess
}

// Forecast returns what a load of a model would take and do. It loads nothing. The errors are those of Load.
func (ld *Loads) Forecast(ctx context.Context, m catalog.Model, o LoadOptions) (Forecast, error) {
	if m.IsRemote {
		return Forecast{}, translate.Invalid("not_supported", "model", "The model "+m.Key+" is on a remote: what a load takes there isn't known.")
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
