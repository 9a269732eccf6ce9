package node

import (
	"cmp"
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/node/remotes"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// LongestTTL returns how long a model that is loaded on first use may stay idle; 0: unlimited.
func (ld *Loads) LongestTTL(key string) time.Duration {
	s := ld.settings.Load()
	return timeToLive(s, ld.names.settingsOf(s, key), LoadOptions{})
}

// Wire returns the wire format of the engine that runs a model.
func (en *Engines) Wire(m catalog.Model) wire.Engine {
	if m.IsRemote {
		return en.remotes.Wire(m.Key)
	}
	return en.wireWith(&m, en.argumentsOf(&m))
}

// wireWith returns the wire format for a model on this machine that is loaded with the operator's arguments.
func (en *Engines) wireWith(m *catalog.Model, args []string) wire.Engine {
	engine := en.of(m).Wire
	if specific, ok := engine.(wire.Specific); ok {
		caps := en.capsWith(m, args)
		return specific.For(&caps)
	}
	return engine
}

// argumentsOf returns the arguments that the operator adds to those of a model's engine.
func (en *Engines) argumentsOf(m *catalog.Model) []string {
	s := en.settings.Load()
	of, own := s.Engines[en.of(m).Name].Args, en.names.settingsOf(s, m.Key).Args
	if len(own) == 0 {
		return of
	}
	return slices.Concat(of, own)
}

// WireOf returns the wire format of an instance.
func (en *Engines) WireOf(in *supervisor.Info) wire.Engine {
	if in.Spec.Remote != nil {
		return remotes.WireOf(in.Spec)
	}
	return en.wireWith(&in.Spec.Model, in.Spec.Args)
}

// Template returns what is known of the chat template of an instance's model; nil if it was never rendered here.
func (en *Engines) Template(in *supervisor.Info) *request.Template {
	if in.Spec.Remote != nil {
		return nil
	}
	return en.templateOf(&in.Spec.Model, in.Spec.Args)
}

// Caps returns a model's capabilities, as far as they are known without loading it.
func (en *Engines) Caps(m catalog.Model) request.Caps {
	if !m.IsRemote {
		return en.capsWith(&m, en.argumentsOf(&m))
	}
	caps := en.baseCaps(&m)
	en.remotes.Describe(&m, &caps)
	return caps
}

func (en *Engines) baseCaps(m *catalog.Model) request.Caps {
	s := en.settings.Load()
	return request.Caps{
		Vision: m.Vision, Audio: m.Audio, MaxContext: m.MaxContextLength, Vocabulary: m.Vocabulary,
		RawGrammar: s.Gates.RawGrammar, OmitsUnseen: s.OmitsUnseen,
	}
}

// capsWith is Caps of a model on this machine that is loaded with the operator's arguments.
func (en *Engines) capsWith(m *catalog.Model, args []string) request.Caps {
	caps, engine := en.baseCaps(m), en.of(m)
	caps.Template = en.templateOf(m, args)
	switch {
	case caps.Template != nil:
		caps.Reasoning = caps.Template.Reasoning()
	case !engine.renders(m, args):
		caps.Reasoning = append([]string{}, m.Reasoning.Options...)
	}
	if engine, ok := engine.Wire.(wire.Describer); ok {
		engine.Describe(&caps)
	}
	return caps
}

// Demand is what a request needs of its model. The zero value means one slot, and the settings' choice for the rest. Its key, instance
// and spec are those of the [Target] that is acquired; its prompt is made with [Engines.PromptKey].
type Demand struct {
	schedule.Demand

	ContextLength int                  // tokens of context, if this request loads the model; 0: the settings' choice
	Notify        *supervisor.Notifier // receives the progress of the wait; may be nil

	outgrown bool // an instance has refused the prompt as too long
}

// Acquire waits for slots of a target, which it may have to load. Errors: the supervisor's, Find's, the context's, or a [*translate.Error].
func (ld *Loads) Acquire(ctx context.Context, t Target, d Demand) (*supervisor.Lease, error) {
	want := d.Demand
	want.Key, want.Instance, want.Draft, want.Hops = t.Model.Key, t.Instance, "", supervisor.Via(ctx)
	want.MayLoad = ld.settings.Load().JIT && !t.Model.IsRemote
	var err error
	if want.Spec, err = ld.firstUse(ctx, &t.Model, d); err != nil {
		return nil, err
	}
	if t.Adapter != nil {
		if want.Adapter = t.Adapter.Key; want.Spec.AdapterNumber(want.Adapter) < 0 { // it has come after the Spec was made
			ld.specs.Delete(t.Model.Key + "\n" + d.Draft)
			if want.Spec, err = ld.firstUse(ctx, &t.Model, d); err != nil {
				return nil, err
			}
		}
		if want.Spec.AdapterNumber(want.Adapter) < 0 {
			return nil, translate.Invalid("unsupported_model", "model", "The adapter "+want.Adapter+" can't be applied to the model "+
				t.Model.Key+": use a LoRA adapter in GGUF that was made for it, and no argument --lora.")
		}
		want.Here = true
	}
	if from, ok := want.Spec.Recipe.(recipe); ok && from.cold {
		want.Unsaved = true
	}
	if d.Draft != "" && want.Spec.Draft != nil {
		want.Draft = want.Spec.Draft.Key
	}
	lease, err := ld.supervisor.Acquire(ctx, want, d.Notify)
	if err != nil {
		return nil, err
	}
	ld.catchUp(lease.Instance.Spec)
	return lease, nil
}

// Load loads a new instance of a model and waits until it is ready. The errors are those of Acquire, and [IDTaken].
func (ld *Loads) Load(ctx context.Context, m catalog.Model, o LoadOptions, notifier *supervisor.Notifier) (supervisor.Info, error) {
	o.ByHand = true
	if err := ld.names.checkID(o.ID, m.Key); err != nil {
		return supervisor.Info{}, err
	}
	ld.devices.seekLost()
	spec, err := ld.spec(ctx, m, o)
	if err != nil {
		return supervisor.Info{}, err
	}
	info, err := ld.supervisor.Load(ctx, spec, notifier)
	if err == nil {
		ld.names.identify(o.ID)
		ld.catchUp(info.Spec)
	}
	return info, err
}

// LoadAt is Load of a target. A place on a remote is told to load the model, if it can be.
func (ld *Loads) LoadAt(ctx context.Context, t Target, o LoadOptions, notifier *supervisor.Notifier) (supervisor.Info, error) {
	if in, ok := ld.names.instance(t.Instance); t.Model.IsRemote || ok && in.Spec.Remote != nil {
		load := remotes.Load{Key: t.Model.Key, Instance: t.Instance, ContextLength: o.ContextLength, Pinned: o.Pinned}
		o.ContextLength, o.Pinned, o.Owner, o.ByHand = 0, nil, "", false
		load.HasMore = o != LoadOptions{}
		return ld.remotes.Load(ctx, load)
	}
	return ld.Load(ctx, t.Model, o, notifier)
}

// Unload unloads an instance once its requests have been answered.
func (ld *Loads) Unload(ctx context.Context, id string) error {
	if in, ok := ld.names.instance(id); ok && in.Spec.Remote != nil {
		return remotes.Unload(ctx, &in)
	}
	return ld.supervisor.Unload(ctx, id)
}

// Instances returns the instances, in the order in which they were loaded.
func (n *Node) Instances() []supervisor.Info { return n.supervisor.Instances() }

// Overview returns the instances and the waiting requests at one moment.
func (n *Node) Overview() supervisor.Overview { return n.supervisor.Overview() }

// Counts returns the counters of each model since the start, by key.
func (n *Node) Counts() map[string]supervisor.Counts { return n.supervisor.Counts() }

// ModelState is a model with its instances.
type ModelState struct {
	*catalog.Model                   // must not be modified
	Instances      []supervisor.Info // those that are loaded
	Choices        process.Choices   // the options that their engine offers
	Aliases        []string          // other names that the settings give it
	Places         []supervisor.Info // on remotes, loaded or not
	ContextLength  int               // see SetContexts

	// Lacks says why the engine can't load it, for people and without a full stop: it is too old. Empty: it can, as far as is known.
	Lacks string

	// IsListed is set if the catalog lists it: the pointer stays the same until the model changes. Else only an instance of it is left.
	IsListed bool
	IsCopy   bool // set if the Model is a copy of the list's: its template has shown another choice of efforts than its file
}

// Broken returns the models whose files can't be used, sorted by key, with the reason in Err.
func (n *Node) Broken(ctx context.Context) ([]catalog.Model, error) {
	models, err := n.catalog.Models(ctx)
	return slices.DeleteFunc(slices.Clone(models), func(m catalog.Model) bool { return m.Err == nil }), err
}

// Companions returns the files that belong to models and are none themselves, sorted by key.
func (n *Node) Companions(ctx context.Context) ([]catalog.Companion, error) {
	return n.catalog.Companions(ctx)
}

// ShortPath returns a path relative to the models folder that it is in, or unchanged if it is in none.
func (n *Node) ShortPath(path string) string {
	for _, dir := range append([]string{n.home.Models()}, n.settings.Load().ModelsDirs...) {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return path
}

// Models returns the models that can be used, sorted by key, followed by those that were deleted but are still loaded.
func (n *Node) Models(ctx context.Context) ([]ModelState, error) {
	models, err := n.catalog.Models(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]ModelState, 0, len(models))
	aliases, lacks := n.Names.aliases(), n.Engines.lacks()
	for i := range models {
		if m := &models[i]; m.Err == nil {
			state := ModelState{Model: m, IsListed: true, Aliases: aliases[m.Key], Lacks: lacks(m)}
			if shown := n.Engines.Reasoning(m); shown.Default != m.Reasoning.Default || !slices.Equal(shown.Options, m.Reasoning.Options) {
				state.Model, state.IsCopy = new(*m), true
				state.Reasoning = shown
			}
			all = append(all, state)
		}
	}
	onDisk := len(all)
	for _, in := range n.supervisor.Instances() {
		key := in.Spec.Model.Key
		i, ok := slices.BinarySearchFunc(all[:onDisk], key, func(m ModelState, key string) int { return cmp.Compare(m.Key, key) })
		if !ok {
			i = slices.IndexFunc(all, func(m ModelState) bool { return m.Key == key })
		}
		if i < 0 {
			i = len(all)
			all = append(all, ModelState{Model: &in.Spec.Model})
		}
		if in.Spec.Remote != nil {
			all[i].Places = append(all[i].Places, in)
		}
		if in.IsLoaded() {
			all[i].Instances, all[i].Choices = append(all[i].Instances, in), n.Engines.Choices(in)
		}
	}
	return all, nil
}

func (en *Engines) lacks() func(*catalog.Model) string {
	by := map[catalog.Format]func(*catalog.Model) string{}
	for format, e := range en.ofFormat {
		by[format] = Lacks(e.Engine, e.process)
	}
	return func(m *catalog.Model) string {
		if says := by[m.Format]; says != nil {
			return says(m)
		}
		return ""
	}
}

// Settings returns the settings in effect.
func (n *Node) Settings() Settings { return *n.settings.Load() }

// ModelDetails is what is known of a model beyond [ModelState].
type ModelDetails struct {
	catalog.Details
	Page       string        // where it was downloaded, without a secret; empty: unknown
	Revision   string        // that was downloaded; empty: unknown
	Engine     string        // that runs it
	Settings   ModelSettings // those in force: the model's own, and those of its engine
	Configured bool          // it has settings of its own
	IsWarm     bool          // states of its prompts are saved
}

// Details reads what is known of a model that can be used.
func (n *Node) Details(m *catalog.Model) (ModelDetails, error) {
	if m.IsRemote {
		return ModelDetails{Engine: remoteEngine.Name, Settings: n.Names.settingsOf(n.settings.Load(), m.Key)}, nil
	}
	read, err := catalog.ReadDetails(m)
	if err != nil {
		return ModelDetails{}, &BrokenModelError{m.Key, m.Path, err}
	}
	s, e := n.settings.Load(), n.Engines.of(m)
	d := ModelDetails{Details: read, Engine: e.Name, Settings: n.Names.settingsOf(s, m.Key)}
	d.Configured = !reflect.ValueOf(d.Settings).IsZero()
	d.IsWarm = !s.isCold(d.Settings)
	es := s.Engines[e.Name]
	d.Settings.Parallel = cmp.Or(d.Settings.Parallel, es.Parallel)
	d.Settings.Args = slices.Concat(es.Args, d.Settings.Args)
	if job, ok := n.Downloads.of(m); ok {
		d.Page, d.Revision = job.Page(), job.Revision
	}
	return d, nil
}

// of returns the completed download that a model's file is from.
func (dl *Downloads) of(m *catalog.Model) (fetch.Job, bool) {
	all := dl.list()
	i := slices.IndexFunc(all, func(j fetch.Job) bool {
		return j.State == fetch.Completed && slices.ContainsFunc(j.Files, func(file string) bool {
			return dl.pathOf(file) == m.Path || m.Format == catalog.FormatMLX && isBelow(m.Path, dl.pathOf(file))
		})
	})
	if i < 0 {
		return fetch.Job{}, false
	}
	return all[i], true
}

// list returns the downloads, the newest first; none before the first settings.
func (dl *Downloads) list() []fetch.Job {
	jobs := dl.jobs.Load()
	if jobs == nil {
		return nil
	}
	all := jobs.List()
	slices.Reverse(all)
	return all
}
