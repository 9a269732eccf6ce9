package manage

import (
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func loadEstimate(c *endpoint.Call, f *node.Forecast, o node.LoadOptions) resource.LoadEstimate {
	out := &f.Outlook
	e := resource.LoadEstimate{
		Type: string(f.Spec.Model.Type), Model: f.Spec.Model.Key, Status: "estimated", Config: plannedConfig(f, o), Slots: f.Spec.Parallel,
		Memory: memoryEstimate(f), Fits: out.Refused == nil, Evicts: []string{}, Shrinks: []string{}, Waits: out.Waits,
	}
	if out.Limits.Memory > 0 {
		e.Budget, e.Free = &out.Limits.Memory, new(max(0, out.Limits.Memory-out.Taken[0].Bytes))
	}
	e.Devices = []resource.EstimateDevice{}
	for _, d := range out.Devices() {
		e.Devices = append(e.Devices, resource.EstimateDevice{Name: d.Device, Needed: d.Needed, Budget: d.Budget, Taken: d.Taken})
	}
	if out.Refused != nil {
		e.Reason = out.Refused.Message
	}
	if out.Loads != nil {
		e.Placement = out.On.String()
		if out.Loads != f.Spec {
			e.Smaller = &resource.SmallerLoad{Slots: out.Loads.Parallel, ContextLength: out.Loads.ContextLength, Memory: out.Bytes()}
		}
	}
	for _, id := range out.Evicts {
		if endpoint.MayUseInstance(c, id) {
			e.Evicts = append(e.Evicts, id)
		} else {
			e.Others++
		}
	}
	for _, id := range out.Shrinks {
		if endpoint.MayUseInstance(c, id) {
			e.Shrinks = append(e.Shrinks, id)
		}
	}
	return e
}

// plannedConfig is the configuration that a load would be made with, as far as it is known before.
func plannedConfig(f *node.Forecast, o node.LoadOptions) resource.LoadConfig {
	c := resource.LoadConfig{ContextLength: f.Spec.ContextLength}
	if f.Choices.Parallel && o.Parallel > 0 {
		c.Parallel = new(f.Spec.Parallel)
	}
	if f.Choices.BatchSize {
		c.BatchSize = new(f.Batch)
	}
	if f.Choices.FlashAttention && f.Spec.FlashAttention != schedule.Auto { // else the engine chooses when it loads
		c.FlashAttention = new(f.Spec.FlashAttention == schedule.On)
	}
	if f.Choices.Experts {
		c.Experts = new(supervisor.Info{Instance: schedule.Instance{Spec: f.Spec}}.Experts())
	}
	if f.Choices.OffloadKV {
		c.OffloadKV = new(f.Spec.OffloadKV != schedule.Off)
	}
	return c
}

func memoryEstimate(f *node.Forecast) resource.MemoryEstimate {
	p := &f.Parts
	e := resource.MemoryEstimate{
		Total: f.Outlook.Needs, Weights: p.Weights, KVCache: p.KVCache, Compute: p.Compute, Projector: p.Projector, Draft: f.Draft,
		PromptCache: f.Spec.Reserve, Confidence: "high",
	}
	e.Engine = max(0, e.Total-e.Weights-e.KVCache-e.Compute-e.Projector-e.Draft-e.PromptCache)
	switch {
	case f.Outlook.Measured:
		e.Confidence = "measured"
	case f.Rough:
		e.Confidence = "low"
	}
	return e
}
