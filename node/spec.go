package node

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// How a model is loaded when nobody says.
const (
	defaultContext  = 32768 // tokens; less where the model's own maximum is, or where it doesn't fit
	smallestContext = 4096  // tokens: no less is chosen to make it fit
	defaultParallel = 4     // requests at a time; fewer where memory is scarce
	contextStep     = 256   // llama-server rounds a context up to a multiple of this

	// promptCacheShare is the part of the memory budget that an engine may fill with prompts that it has seen; but no more
	// than promptCacheFactor times what the model itself takes, and no more than maxPromptCache.
	promptCacheShare  = 1. / 16
	promptCacheFactor = 2
	maxPromptCache    = 8 << 30
	maxCheckpoints    = 32 // for each slot: llama-server's own choice
	// slotsShare is the part of the memory budget that a model may take for the sake of more than one slot.
	slotsShare = 0.5
)

// LoadOptions is what a request may say about a load. A zero field is chosen by the settings.
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

// origin is how a Spec came about, by which it can be made again under other settings.
type origin struct {
	settings *Settings
	options  LoadOptions
}

// OwnerOf is who had an instance loaded, see [Identity]; empty: nobody in particular, such as a configuration.
func OwnerOf(in supervisor.Info) string {
	from, _ := in.Spec.Origin.(origin)
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
func (n *Node) firstUse(ctx context.Context, m *catalog.Model, u Use) (*supervisor.Spec, error) {
	options := LoadOptions{Draft: u.Draft, Owner: u.Owner}
	if u.ContextLength != 0 {
		options.TTL, options.ContextLength = u.TTL, u.ContextLength
		return n.spec(ctx, *m, options)
	}
	settings, budget, key := n.settings.Load(), n.budget.Load(), m.Key
	if u.Draft != "" {
		key += "\n" + u.Draft
	}
	var spec *supervisor.Spec
	if v, ok := n.specs.Load(key); ok {
		if made := v.(madeSpec); made.settings == settings && made.budget == budget && made.changed.Equal(m.Changed) {
			spec = made.spec
		}
	}
	if spec == nil {
		var err error
		if spec, err = n.spec(ctx, *m, LoadOptions{Draft: u.Draft}); err != nil {
			return nil, err
		}
		n.specs.Store(key, madeSpec{settings, budget, m.Changed, spec})
	}
	if u.TTL != nil || u.Owner != "" { // the one that is remembered is for everybody
		own := *spec
		if u.TTL != nil {
			own.TTL, options.TTL = *u.TTL, u.TTL
		}
		own.Origin = origin{settings, options}
		spec = &own
	}
	return spec, nil
}

// spec is what a model is loaded with: what the request says, else the model's settings, else the engine's, else what fits.
// The error is a [*translate.Error] or one of Find's.
func (n *Node) spec(ctx context.Context, m catalog.Model, o LoadOptions) (*supervisor.Spec, error) {
	s := n.settings.Load()
	ms := n.settingsOf(s, m.Key)
	spec := &supervisor.Spec{
		Engine: engineOf[m.Format],
		Model:  m,
		Args:   slices.Concat(s.LlamaServer.Args, ms.Args),

		Unconfined:  s.LlamaServer.Unconfined,
		Readable:    s.LlamaServer.Readable,
		Pinned:      ms.Pinned,
		AutoRestart: o.ByHand || ms.Pinned || ms.Preload,
		TTL:         timeToLive(s, ms, o),
		Origin:      origin{s, o},
	}
	if m.Type == catalog.TypeLLM {
		spec.Private = s.PrivatePrompts
		spec.BatchSize, spec.FlashAttention, spec.OffloadKV = o.BatchSize, o.FlashAttention, o.OffloadKV
		if err := checkExperts(m, o.Experts); err != nil {
			return nil, err
		}
		if m.Experts > 0 {
			spec.Experts = o.Experts
		}
		draft, err := n.draft(ctx, m, cmp.Or(o.Draft, ms.Draft))
		if err != nil {
			return nil, err
		}
		spec.Draft = draft
	}
	n.size(spec, cmp.Or(o.ContextLength, ms.ContextLength), cmp.Or(ms.Parallel, s.LlamaServer.Parallel))
	return spec, nil
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

// size chooses the context and the slots where they aren't given, such that it fits: the longest context for one request
// first, then slots; and tells what it all takes.
func (n *Node) size(spec *supervisor.Spec, context, parallel int) {
	budget := n.budget.Load()
	fits := func(context, parallel int, share float64) bool {
		return budget <= 0 || float64(n.estimate(spec, context, parallel)) <= share*float64(budget)
	}
	most := spec.Model.MaxContextLength
	spec.ContextLength = contextLength(cmp.Or(context, defaultContext), most)
	for context == 0 && spec.ContextLength > smallestContext && !fits(spec.ContextLength, max(1, parallel), 1) {
		spec.ContextLength = max(contextLength(spec.ContextLength/2, most), smallestContext)
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
	n.fill(spec, budget)
	n.smaller(spec, parallel == 0)
}

// fill chooses what else a model of a size gets: checkpoints and a prompt cache; and tells what it all takes.
func (n *Node) fill(spec *supervisor.Spec, budget int64) {
	spec.Memory = n.estimate(spec, spec.ContextLength, spec.Parallel)
	n.checkpoints(spec, budget)
	if spec.Model.Type == catalog.TypeLLM && !spec.Private { // that cache is common to all slots, and isn't asked for those chosen by name
		spec.PromptCache = promptCache(spec.Args, budget, spec.Memory+spec.Reserve)
		spec.Reserve += spec.PromptCache
	}
	spec.Memory += spec.Reserve
}

// smaller lists in which smaller sizes a model may be loaded beside others: with fewer slots where their number was left to
// us, then with half of the prompt cache, then without one, where its size was left to us.
func (n *Node) smaller(spec *supervisor.Spec, fewerSlots bool) {
	budget := n.budget.Load()
	if budget <= 0 {
		return
	}
	own := *spec
	add := func() {
		spec.Smaller = append(spec.Smaller, supervisor.Size{
			Parallel: own.Parallel, PromptCache: own.PromptCache, Checkpoints: own.Checkpoints, Memory: own.Memory, Reserve: own.Reserve,
		})
	}
	for fewerSlots && own.Parallel > 1 {
		own.Parallel--
		own.Checkpoints, own.PromptCache, own.Reserve = 0, 0, 0
		n.fill(&own, budget)
		add()
	}
	if own.PromptCache == 0 || cacheArgument(spec.Args) != "" {
		return
	}
	for _, cache := range []int64{own.PromptCache / 2 >> 20 << 20, 0} {
		less := own.PromptCache - cache
		own.PromptCache, own.Reserve, own.Memory = cache, own.Reserve-less, own.Memory-less
		add()
	}
}

// checkpoints chooses how many states of a context an engine may keep of a model whose context can't be cut back: one with
// a sliding window, or a recurrent one. They may take as much as the prompt cache.
func (n *Node) checkpoints(spec *supervisor.Spec, budget int64) {
	memory, err := spec.Model.Estimate(catalog.Shape{ContextLength: spec.ContextLength, Parallel: spec.Parallel})
	if err != nil || memory.Checkpoint <= 0 || budget <= 0 {
		return
	}
	each := memory.Checkpoint * int64(spec.Parallel)
	share := min(int64(promptCacheShare*float64(budget)), budget-spec.Memory)
	spec.Checkpoints = int(max(1, min(share/each, maxCheckpoints)))
	spec.Reserve = each * int64(spec.Checkpoints)
}

// promptCache is how much an engine may keep of prompts that it has seen: what its arguments say, else a share of the
// budget where there is room for it beside what the model itself takes.
func promptCache(args []string, budget, model int64) int64 {
	if size := cacheArgument(args); size != "" {
		return max(0, mebibytes(size))
	}
	cache := min(promptCacheFactor*model, maxPromptCache)
	if budget > 0 {
		cache = min(cache, int64(promptCacheShare*float64(budget)), budget-model)
	}
	return max(0, cache) >> 20 << 20
}

// cacheArgument is the size that arguments give the prompt cache; empty if they don't.
func cacheArgument(args []string) string {
	for i := len(args) - 2; i >= 0; i-- {
		if args[i] == "-cram" || args[i] == "--cache-ram" {
			return args[i+1]
		}
	}
	return ""
}

// estimate is what a model takes with a context and slots, without its prompt cache, in bytes. Where it can't be told it is
// the size of its files and a tenth.
func (n *Node) estimate(spec *supervisor.Spec, context, parallel int) int64 {
	total := int64(supervisor.RuntimeMemory)
	shape := catalog.Shape{
		ContextLength: context, Parallel: parallel, BatchSize: spec.BatchSize, ExpertsUsed: spec.Experts,
		NoFlashAttention: spec.FlashAttention == supervisor.Off,
	}
	if spec.Model.Type == catalog.TypeEmbedding {
		shape.BatchSize, shape.MicroBatch = context, context
	}
	total += n.memoryOf(spec.Model, shape)
	if spec.Draft != nil {
		total += n.memoryOf(*spec.Draft, catalog.Shape{ContextLength: context, Parallel: parallel})
	}
	return total
}

// memoryOf is what one model takes, in bytes; a guess where that can't be told.
func (n *Node) memoryOf(m catalog.Model, shape catalog.Shape) int64 {
	memory, err := m.Estimate(shape)
	if err != nil {
		n.log.Warn("the memory that a model takes can't be told", "model", m.Key, "error", err)
		return m.SizeBytes + m.SizeBytes/10
	}
	return memory.Total()
}

func contextLength(want, maximum int) int {
	n := (want + contextStep - 1) / contextStep * contextStep
	if maximum > 0 {
		n = min(n, maximum)
	}
	return n
}

// isPattern tells whether an alias stands for more than itself.
func isPattern(alias string) bool { return strings.ContainsAny(alias, "*?[") }
