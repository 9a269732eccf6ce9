package node

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Target is what a request's model name means.
type Target struct {
	Model    catalog.Model
	Instance string // the one instance that was asked for by its id; else empty
}

// BrokenModelError says that a model's file can't be used.
type BrokenModelError struct {
	Key, Path string
	Reason    error
}

func (e *BrokenModelError) Error() string {
	return fmt.Sprintf("The model %s can't be used. Of its file %s: %v.", e.Key, filepath.Base(e.Path), e.Reason)
}

// Unwrap gives the reason.
func (e *BrokenModelError) Unwrap() error { return e.Reason }

// Find says which model, or which instance of it, goes by a name: an instance's id, its number (key:1 is the first, whose
// id is the key alone), a key, or a bare name. What is a key means any instance of the model. The error is a
// [*catalog.NotFoundError], a [*BrokenModelError] or the context's.
func (n *Node) Find(ctx context.Context, name string) (Target, error) {
	resolved := n.settings.Load().resolve(name)
	if _, unknown := n.known(resolved); unknown != nil {
		if in, ok := n.instance(name); ok { // a second one, whose id is no key, or one whose model is gone from the disk
			return Target{in.Spec.Model, in.ID}, nil
		}
		if t, ok := n.numbered(ctx, strings.TrimSpace(name)); ok {
			return t, nil
		}
	}
	m, err := n.lookup(ctx, resolved)
	switch {
	case err != nil:
		return Target{}, err
	case m.Err == nil:
		return Target{Model: m}, nil
	}
	if in, ok := n.instance(name); ok {
		return Target{in.Spec.Model, in.ID}, nil
	}
	return Target{}, &BrokenModelError{m.Key, m.Path, m.Err}
}

// lookup asks the catalog for a model by its names, among them the identifiers that it can be downloaded by.
func (n *Node) lookup(ctx context.Context, name string) (catalog.Model, error) {
	names := namesOf(name)
	return n.catalog.Lookup(ctx, names[0], names[1:]...)
}

// known is lookup without a look at the disk.
func (n *Node) known(name string) (catalog.Model, error) {
	names := namesOf(name)
	return n.catalog.Known(names[0], names[1:]...)
}

// instance finds an instance by its id, in any case.
func (n *Node) instance(id string) (supervisor.Info, bool) {
	id = strings.TrimSpace(id)
	for _, in := range n.supervisor.Instances() {
		if strings.EqualFold(in.ID, id) {
			return in, true
		}
	}
	return supervisor.Info{}, false
}

// namesOf are a model's name and, behind it, others that mean the same: the identifiers that it can be downloaded by.
func namesOf(name string) []string {
	names := []string{name}
	repo, variant, several := strings.Cut(name, "@")
	for _, other := range append([]string{repo}, fetch.SameModel(repo)...) {
		publisher, bare, _ := strings.Cut(other, "/")
		key := catalog.Key(publisher, bare)
		if several {
			key += "@" + variant
		}
		if !strings.EqualFold(key, name) {
			names = append(names, key)
		}
	}
	return names
}

// LongestTTL is how long a model that is loaded on first use may stay idle, as the settings say; 0: for ever.
func (n *Node) LongestTTL(key string) time.Duration {
	s := n.settings.Load()
	return timeToLive(s, n.settingsOf(s, key), LoadOptions{})
}

// Wire is the wire format of the engine that runs a model.
func (n *Node) Wire(m catalog.Model) wire.Engine { return n.engineOf(&m).Wire }

// Caps is what a model can do, as far as it is known without loading it.
func (n *Node) Caps(m catalog.Model) request.Caps {
	caps := request.Caps{
		Vision: m.Vision, MaxContext: m.MaxContextLength, RawGrammar: n.settings.Load().Gates.RawGrammar,
		Reasoning: append([]string{}, m.Reasoning.Options...),
	}
	if engine, ok := n.Wire(m).(wire.Describer); ok {
		engine.Describe(&caps)
	}
	return caps
}

// Demand is what one request demands of its model. The zero value is one slot, and the settings' word for the rest.
type Demand struct {
	Slots         int            // how many sequences the engine is to generate at a time; 0: one
	ContextLength int            // tokens of context, if this request loads the model; 0: the settings' choice
	TTL           *time.Duration // how long the model stays idle before it is unloaded, if this request loads it; 0: for ever
	Owner         string         // who asks, see [Identity]: a model's queue is shared among owners, and its loads note them; prompts are kept apart if the settings say so
	Draft         string         // the model that speculative decoding is to use, by any of its names

	Priority bool                 // goes before others who wait, within bounds: for who has been served already and comes back
	Notify   *supervisor.Notifier // told of the progress of the wait; nil: nobody

	context  supervisor.ContextNeed // see Needs
	outgrown bool                   // an instance has refused the prompt as too long for it
}

// Needs notes how much context a request takes, by which an instance is chosen where the model has several.
func (d *Demand) Needs(need Need) { d.context = need.context() }

// Acquire waits for slots of a target, loading it first if need be and if the settings allow it. The error is one of the
// supervisor's, of Find's or the context's, or a [*translate.Error].
func (n *Node) Acquire(ctx context.Context, t Target, d Demand) (*supervisor.Lease, error) {
	want := supervisor.Demand{
		Key: t.Model.Key, Instance: t.Instance, Slots: max(1, d.Slots), Owner: d.Owner, Notify: d.Notify, Priority: d.Priority,
		MayLoad: n.settings.Load().JIT, Context: d.context,
	}
	var err error
	if want.Spec, err = n.firstUse(ctx, &t.Model, d); err != nil {
		return nil, err
	}
	if d.Draft != "" && want.Spec.Draft != nil {
		want.Draft = want.Spec.Draft.Key
	}
	lease, err := n.supervisor.Acquire(ctx, want)
	if err != nil {
		return nil, err
	}
	n.catchUp(lease.Instance.Spec)
	return lease, nil
}

// Load loads a new instance of a model and waits until it is ready. The errors are those of Acquire.
func (n *Node) Load(ctx context.Context, m catalog.Model, o LoadOptions, notifier *supervisor.Notifier) (supervisor.Info, error) {
	o.ByHand = true
	spec, err := n.spec(ctx, m, o)
	if err != nil {
		return supervisor.Info{}, err
	}
	info, err := n.supervisor.Load(ctx, spec, notifier)
	if err == nil {
		n.catchUp(info.Spec)
	}
	return info, err
}

// Unload ends an instance, once what it is doing is done.
func (n *Node) Unload(ctx context.Context, id string) error { return n.supervisor.Unload(ctx, id) }

// Instances describes the instances, in order of loading.
func (n *Node) Instances() []supervisor.Info { return n.supervisor.Instances() }

// Overview is the instances and who waits, at one moment.
func (n *Node) Overview() supervisor.Overview { return n.supervisor.Overview() }

// Counts is what has happened to each model since the start, by key.
func (n *Node) Counts() map[string]supervisor.Counts { return n.supervisor.Counts() }

// ModelState is a model with its instances.
type ModelState struct {
	catalog.Model
	Instances []supervisor.Info  // those that are loaded
	Choices   supervisor.Choices // what could be chosen of their loads
	Aliases   []string           // other names that the settings give it

	// Listed is the same model in the catalog's list, where it is as long as nothing has changed; nil for one that is gone
	// from the disk.
	Listed *catalog.Model
}

// Broken lists the models whose files can't be used, with the reason in Err, by key.
func (n *Node) Broken(ctx context.Context) ([]catalog.Model, error) {
	models, err := n.catalog.Models(ctx)
	if err != nil {
		return nil, err
	}
	var broken []catalog.Model
	for _, m := range models {
		if m.Err != nil {
			broken = append(broken, m)
		}
	}
	return broken, nil
}

// ShortPath is a path below the folder of models that it is in; as it is, where it is in none.
func (n *Node) ShortPath(path string) string {
	for _, dir := range append([]string{n.home.Models()}, n.settings.Load().ModelsDirs...) {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return path
}

// Models lists the models that can be used, by key. One that is gone from the disk but loaded is among them.
func (n *Node) Models(ctx context.Context) ([]ModelState, error) {
	models, err := n.catalog.Models(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]ModelState, 0, len(models))
	aliases := n.aliases()
	for i := range models {
		if models[i].Err == nil {
			all = append(all, ModelState{Model: models[i], Listed: &models[i], Aliases: aliases[models[i].Key]})
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
			all = append(all, ModelState{Model: in.Spec.Model})
		}
		if in.Status == supervisor.Ready || in.Status == supervisor.Draining {
			all[i].Instances, all[i].Choices = append(all[i].Instances, in), n.Choices(in)
		}
	}
	return all, nil
}

// Settings is what is in force.
func (n *Node) Settings() Settings { return *n.settings.Load() }
