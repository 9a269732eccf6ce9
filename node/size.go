package node

import (
	"cmp"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Defaults for loading a model.
const (
	defaultContext  = 32768 // tokens; less if the model's maximum is lower, or if it doesn't fit
	smallestContext = 4096  // tokens; never reduced further to make a model fit
	defaultParallel = 4     // concurrent requests; fewer if memory is scarce

	// promptCacheShare is the part of the memory budget that an engine's prompt cache may fill; at most promptCacheFactor
	// times the model's own memory, and at most maxPromptCache.
	promptCacheShare  = 1. / 16
	promptCacheFactor = 2
	maxPromptCache    = 8 << 30
	slotsShare        = 0.5 // the part of the memory budget up to which a model gets more than one slot
)

type footprint struct {
	total   int64 // on all devices of this machine
	offload int64 // the part of it that GPUs take if the model is wholly on them
}

// size sets the context, the slots and the memory of a Spec. Values of 0 are chosen so that the model fits: first the
// longest context for one request, then as many slots as possible. It fits if it can be wholly on GPUs, or else, if the engine has none for
// it, in the machine's memory. It reports whether it does.
func (ld *Loads) size(spec *schedule.Spec, context, parallel int) bool {
	e, most := ld.engines.byName[spec.Engine], spec.Model.MaxContextLength
	can := e.choices(&spec.Model)
	if !can.ContextLength {
		context = cmp.Or(most, defaultContext)
	}
	if !can.Parallel {
		parallel = 1
	}
	budget := ld.devices.budget.Load()
	least := ld.estimate(spec, e.contextLength(cmp.Or(context, smallestContext), most), max(1, parallel))
	gpu := ld.devices.gpuRoom(spec.Devices, least.offload)
	fits := func(context, parallel int, share float64) bool {
		f := ld.estimate(spec, context, parallel)
		if gpu > 0 {
			return float64(f.offload) <= share*float64(gpu)
		}
		return budget <= 0 || float64(f.total) <= share*float64(budget)
	}
	spec.ContextLength = e.contextLength(cmp.Or(context, defaultContext), most)
	for context == 0 && spec.ContextLength > smallestContext && !fits(spec.ContextLength, max(1, parallel), 1) {
		spec.ContextLength = max(e.contextLength(spec.ContextLength/2, most), smallestContext)
	}
	spec.Parallel = parallel
	if parallel == 0 {
		spec.Parallel = defaultParallel
	}
	if spec.BatchSize > 0 { // a batch has a token of each slot, or the engine doesn't start
		spec.Parallel = min(spec.Parallel, spec.BatchSize)
	}
	if parallel == 0 {
		for spec.Parallel > 1 && !fits(spec.ContextLength, spec.Parallel, slotsShare) {
			spec.Parallel--
		}
	}
	ld.fill(spec, budget)
	ld.smaller(spec, parallel == 0, context == 0 && gpu > 0)
	return fits(spec.ContextLength, spec.Parallel, 1)
}

// fill sets the checkpoints, the prompt cache and the memory of a Spec whose context and slots are set.
func (ld *Loads) fill(spec *schedule.Spec, budget int64) {
	f := ld.estimate(spec, spec.ContextLength, spec.Parallel)
	spec.Memory, spec.Offload, spec.Checkpoints, spec.PromptCache, spec.Reserve = f.total, f.offload, 0, 0, 0
	ld.checkpoints(spec, budget)
	e := ld.engines.byName[spec.Engine]
	if e.choices(&spec.Model).PromptCache && !spec.Private { // all slots share that cache, and requests pinned to a slot don't use it
		cache := min(promptCacheFactor*(spec.Memory+spec.Reserve), maxPromptCache)
		if here := spec.Memory - spec.Offload + spec.Reserve; budget > 0 {
			cache = min(cache, int64(promptCacheShare*float64(budget)), budget-here)
		}
		spec.PromptCache = max(0, cache) >> 20 << 20
		if fixed := e.fixed(spec.Args).PromptCache; fixed != nil {
			spec.PromptCache = *fixed
		}
		spec.Reserve += spec.PromptCache
	}
	spec.Memory += spec.Reserve
}

// smaller lists the smaller sizes in which a model may be loaded beside others: with fewer slots, then with a shorter context, then with
// half of the prompt cache, then without one. A number of slots, a context or a cache size that was given stays.
func (ld *Loads) smaller(spec *schedule.Spec, fewerSlots, shorter bool) {
	budget, e := ld.devices.budget.Load(), ld.engines.byName[spec.Engine]
	if budget <= 0 && len(spec.Devices) == 0 {
		return
	}
	own := *spec
	add := func() {
		spec.Smaller = append(spec.Smaller, schedule.Size{
			ContextLength: own.ContextLength, Parallel: own.Parallel, PromptCache: own.PromptCache, Checkpoints: own.Checkpoints,
			Memory: own.Memory, Offload: own.Offload, Reserve: own.Reserve,
		})
	}
	for fewerSlots && own.Parallel > 1 {
		own.Parallel--
		ld.fill(&own, budget)
		add()
	}
	for shorter && own.ContextLength > smallestContext {
		own.ContextLength = max(e.contextLength(own.ContextLength/2, spec.Model.MaxContextLength), smallestContext)
		ld.fill(&own, budget)
		add()
	}
	if own.PromptCache == 0 || e.fixed(spec.Args).PromptCache != nil {
		return
	}
	for _, cache := range []int64{own.PromptCache / 2 >> 20 << 20, 0} {
		less := own.PromptCache - cache
		own.PromptCache, own.Reserve, own.Memory = cache, own.Reserve-less, own.Memory-less
		add()
	}
}

// checkpoints sets the number of checkpoints for a context that can't be truncated: they may take as much as the prompt cache.
func (ld *Loads) checkpoints(spec *schedule.Spec, budget int64) {
	e := ld.engines.byName[spec.Engine]
	if e.Estimate == nil || e.MaxCheckpoints == 0 || budget <= 0 {
		return
	}
	memory, err := e.Estimate(spec)
	if err != nil || memory.Checkpoint <= 0 {
		return
	}
	each := memory.Checkpoint * int64(spec.Parallel)
	share := min(int64(promptCacheShare*float64(budget)), budget-(spec.Memory-spec.Offload))
	spec.Checkpoints = int(max(1, min(share/each, int64(e.MaxCheckpoints))))
	spec.Reserve = each * int64(spec.Checkpoints)
}

// estimate returns the memory that a model takes with a context and slots, without its prompt cache.
func (ld *Loads) estimate(spec *schedule.Spec, context, parallel int) footprint {
	sized := *spec
	sized.ContextLength, sized.Parallel = context, parallel
	f := ld.memoryOf(&sized)
	for i := range spec.Adapters {
		f.total, f.offload = f.total+spec.Adapters[i].SizeBytes, f.offload+spec.Adapters[i].SizeBytes
	}
	if spec.Draft != nil {
		draft := ld.memoryOf(&schedule.Spec{
			Engine: spec.Engine, Model: *spec.Draft, ContextLength: context, Parallel: parallel,
			Devices: spec.Devices,
		})
		f.total, f.offload = f.total+draft.total, f.offload+draft.offload
	}
	f.total += schedule.RuntimeMemory
	return f
}

// memoryOf returns the memory that a Spec's model takes, without its draft: the engine's estimate, or else the files' size plus a tenth.
func (ld *Loads) memoryOf(spec *schedule.Spec) footprint {
	m := &spec.Model
	size := m.SizeBytes + m.SizeBytes/10
	memory := catalog.Memory{Weights: size}
	if e := ld.engines.byName[spec.Engine]; e.Estimate != nil {
		var err error
		if memory, err = e.Estimate(spec); err != nil {
			ld.log.Warn("the memory of a model can't be estimated", "model", m.Key, "error", err)
			memory = catalog.Memory{Weights: size}
		}
	}
	f := footprint{total: memory.Total()}
	if len(spec.Devices) == 0 {
		return f
	}
	f.offload = f.total
	if spec.OffloadKV == schedule.Off {
		f.offload -= memory.KVCache
	}
	if layers := memory.Layers; spec.GPULayers != nil && layers > 0 {
		f.offload = int64(float64(f.offload) * float64(min(*spec.GPULayers, layers)) / float64(layers))
	}
	return f
}
