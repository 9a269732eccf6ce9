package node

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
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

// Find says which model, or which instance of it, goes by a name: an instance's id, a key, or a bare name. The error is a
// [*catalog.NotFoundError], a [*BrokenModelError] or the context's.
func (n *Node) Find(ctx context.Context, name string) (Target, error) {
	m, err := n.catalog.Lookup(ctx, n.settings.Load().resolve(name))
	if err == nil && m.Err == nil {
		return Target{Model: m}, nil
	}
	// Only now the instances: a second one has an id that is no key, and a model may be gone from the disk but loaded.
	for _, in := range n.supervisor.Instances() {
		if strings.EqualFold(in.ID, strings.TrimSpace(name)) {
			return Target{in.Spec.Model, in.ID}, nil
		}
	}
	if err == nil {
		return Target{}, &BrokenModelError{m.Key, m.Path, m.Err}
	}
	return Target{}, err
}

// Wire is the wire format of the engine that runs a model.
func (n *Node) Wire(m catalog.Model) translate.Wire { return n.engines[engineOf[m.Format]].wire }

// Caps is what a model can do, as far as it is known without loading it.
func (n *Node) Caps(m catalog.Model) translate.Caps {
	return translate.Caps{Vision: m.Vision}
}

// Use is what a request needs of its model. The zero value is one slot, and the settings' word for the rest.
type Use struct {
	Slots int            // how many sequences the engine is to generate at a time; 0: one
	TTL   *time.Duration // how long the model stays idle before it is unloaded, if this request loads it; 0: for ever
	Draft string         // the model that speculative decoding is to use, by any of its names

	Priority bool              // goes before others who wait, within bounds: for who has been served already and comes back
	Watch    *supervisor.Watch // told how the wait goes; nil: nobody
}

// Acquire waits for slots of a target, loading it first if need be and if the settings allow it. The error is one of the
// supervisor's, of Find's or the context's, or a [*translate.Error].
func (n *Node) Acquire(ctx context.Context, t Target, u Use) (*supervisor.Lease, error) {
	want := supervisor.Want{
		Key: t.Model.Key, Instance: t.Instance, Slots: max(1, u.Slots), Watch: u.Watch, Priority: u.Priority,
		MayLoad: n.settings.Load().JIT,
	}
	var err error
	if want.Spec, err = n.firstUse(&t.Model, u.Draft, u.TTL); err != nil {
		return nil, err
	}
	if u.Draft != "" && want.Spec.Draft != nil {
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
func (n *Node) Load(ctx context.Context, m catalog.Model, o LoadOptions, watch *supervisor.Watch) (supervisor.Info, error) {
	o.ByHand = true
	spec, err := n.spec(m, o)
	if err != nil {
		return supervisor.Info{}, err
	}
	info, err := n.supervisor.Load(ctx, spec, watch)
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
	Instances []supervisor.Info // those that are loaded
}

// Models lists the models that can be used, by key. One that is gone from the disk but loaded is among them.
func (n *Node) Models(ctx context.Context) ([]ModelState, error) {
	models, err := n.catalog.Models(ctx)
	if err != nil {
		return nil, err
	}
	index := map[string]int{}
	var all []ModelState
	add := func(m catalog.Model) {
		if _, ok := index[m.Key]; !ok && m.Err == nil {
			index[m.Key] = len(all)
			all = append(all, ModelState{Model: m})
		}
	}
	for _, m := range models {
		add(m)
	}
	for _, in := range n.supervisor.Instances() {
		add(in.Spec.Model)
		if in.Status == supervisor.Ready || in.Status == supervisor.Draining {
			state := &all[index[in.Spec.Model.Key]]
			state.Instances = append(state.Instances, in)
		}
	}
	return all, nil
}

// Settings is what is in force.
func (n *Node) Settings() Settings { return *n.settings.Load() }
