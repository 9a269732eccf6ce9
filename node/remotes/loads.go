package remotes

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
)

// notManaged is the error of a load or unload of a model on a remote that does so by itself.
func notManaged(key string, on *schedule.Remote) error {
	return translate.Invalid("not_supported", "model", fmt.Sprintf(
		"The model %s is on the remote %s (%s), which loads and unloads its models by itself.", key, on.Name, on.Kind))
}

// failed is the error of a remote that doesn't carry out what it was asked for.
func failed(remote string, cause error) error {
	return translate.NewError(translate.KindEngineFailed, "remote_failed", "model",
		fmt.Sprintf("The remote %s has failed: %v.", remote, cause))
}

// Load is what a client has chosen of the load of a model on a remote.
type Load struct {
	Key, Instance string // the model, and the place; empty: the first that can
	ContextLength int    // in tokens; 0: the remote's choice
	Pinned        *bool  // only other nodes of the cluster take it
	HasMore       bool   // something else is chosen
}

// Load has a remote load a model. The error may be a [*translate.Error].
func (r *Remotes) Load(ctx context.Context, o Load) (supervisor.Info, error) {
	var chosen, first *schedule.Spec
	for _, in := range r.Supervisor.Instances() {
		if in.Spec.Remote == nil || in.Spec.Model.Key != o.Key || o.Instance != "" && in.ID != o.Instance {
			continue
		}
		first = cmp.Or(first, in.Spec)
		if remote.Manages(in.Spec.Remote.Kind) && in.Away == "" && (chosen == nil || in.Spec.Remote.Prefer < chosen.Remote.Prefer) {
			chosen = in.Spec
		}
	}
	switch {
	case first == nil:
		return supervisor.Info{}, &catalog.NotFoundError{Name: o.Key}
	case chosen == nil:
		return supervisor.Info{}, notManaged(o.Key, first.Remote)
	}
	if o.HasMore || o.Pinned != nil && !chosen.Remote.Peer {
		return supervisor.Info{}, translate.Invalid("not_supported", "", fmt.Sprintf(
			`The remote %s is told "context_length" only: leave out what else is to be chosen of the load.`, chosen.Remote.Name))
	}
	watch, note, begun := chosen.Remote.Server.(*remote.Watch), chosen.Recipe.(recipe), time.Now()
	id, err := watch.Load(ctx, &note.model, o.ContextLength)
	if err == nil && o.Pinned != nil && *o.Pinned {
		err = watch.Pin(ctx, id, true)
	}
	if err != nil {
		return supervisor.Info{}, failed(chosen.Remote.Name, err)
	}
	watch.Refresh(ctx)
	for _, in := range r.Supervisor.Instances() {
		if in.Spec.Remote != nil && in.Spec.Remote.Name == chosen.Remote.Name && in.Spec.Model.Key == o.Key {
			in.LoadTime = time.Since(begun)
			return in, nil
		}
	}
	return supervisor.Info{}, failed(chosen.Remote.Name, fmt.Errorf("it has no model %s any more", note.model.ID))
}

// Pin has another node of the cluster pin all its instances of a model, or not any more. Other remotes decide for themselves.
func Pin(ctx context.Context, in *supervisor.Info, pinned bool) error {
	return each(ctx, in, in.Spec.Remote.Peer, func(w *remote.Watch, id string) error { return w.Pin(ctx, id, pinned) })
}

// Unload has a remote unload all its instances of a model.
func Unload(ctx context.Context, in *supervisor.Info) error {
	return each(ctx, in, remote.Manages(in.Spec.Remote.Kind), func(w *remote.Watch, id string) error { return w.Unload(ctx, id) })
}

// each does something with each instance of a model that a remote has loaded, if it can be asked for that.
func each(ctx context.Context, in *supervisor.Info, isManaged bool, do func(w *remote.Watch, id string) error) error {
	on := in.Spec.Remote
	if !isManaged {
		return notManaged(in.Spec.Model.Key, on)
	}
	watch, instances := on.Server.(*remote.Watch), in.Spec.Recipe.(recipe).model.Instances
	if len(instances) == 0 {
		return schedule.UnknownInstance(in.ID)
	}
	for _, id := range instances {
		if err := do(watch, id); err != nil {
			return failed(on.Name, err)
		}
	}
	watch.Refresh(ctx)
	return nil
}
