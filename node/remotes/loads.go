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
)

// NotManagedError is returned for a load or unload of a model on a remote that does so by itself.
type NotManagedError struct{ Key, Remote, Kind string }

func (e *NotManagedError) Error() string {
	return fmt.Sprintf("The model %s is on the remote %s (%s), which loads and unloads its models by itself.", e.Key, e.Remote, e.Kind)
}

// NotChosenError is returned for a load on a remote with options that only loads on this machine have.
type NotChosenError struct{ Remote string }

func (e *NotChosenError) Error() string {
	return fmt.Sprintf(`The remote %s is told "context_length" only: leave out what else is to be chosen of the load.`, e.Remote)
}

// Error is returned when a remote doesn't carry out what it was asked for.
type Error struct {
	Remote string
	Cause  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("The remote %s has failed: %v.", e.Remote, e.Cause)
}

// Unwrap returns what the remote said.
func (e *Error) Unwrap() error { return e.Cause }

// Load is what a client has chosen of the load of a model on a remote.
type Load struct {
	Key, Instance string // the model, and the place; empty: the first that can
	ContextLength int    // in tokens; 0: the remote's choice
	Pinned        *bool  // only other nodes of the cluster take it
	HasMore       bool   // something else is chosen
}

// Load has a remote load a model. The error may be a [*NotManagedError], a [*NotChosenError] or an [*Error].
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
		return supervisor.Info{}, &NotManagedError{o.Key, first.Remote.Name, first.Remote.Kind}
	}
	if o.HasMore || o.Pinned != nil && !chosen.Remote.Peer {
		return supervisor.Info{}, &NotChosenError{chosen.Remote.Name}
	}
	watch, note, begun := chosen.Remote.Server.(*remote.Watch), chosen.Recipe.(recipe), time.Now()
	id, err := watch.Load(ctx, &note.model, o.ContextLength)
	if err == nil && o.Pinned != nil && *o.Pinned {
		err = watch.Pin(ctx, id, true)
	}
	if err != nil {
		return supervisor.Info{}, &Error{chosen.Remote.Name, err}
	}
	watch.Refresh(ctx)
	for _, in := range r.Supervisor.Instances() {
		if in.Spec.Remote != nil && in.Spec.Remote.Name == chosen.Remote.Name && in.Spec.Model.Key == o.Key {
			in.LoadTime = time.Since(begun)
			return in, nil
		}
	}
	return supervisor.Info{}, &Error{chosen.Remote.Name, fmt.Errorf("it has no model %s any more", note.model.ID)}
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
		return &NotManagedError{in.Spec.Model.Key, on.Name, on.Kind}
	}
	watch, instances := on.Server.(*remote.Watch), in.Spec.Recipe.(recipe).model.Instances
	if len(instances) == 0 {
		return schedule.UnknownInstance(in.ID)
	}
	for _, id := range instances {
		if err := do(watch, id); err != nil {
			return &Error{on.Name, err}
		}
	}
	watch.Refresh(ctx)
	return nil
}
