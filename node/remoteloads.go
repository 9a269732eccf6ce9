package node

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
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

// RemoteError is returned when a remote doesn't carry out what it was asked for.
type RemoteError struct {
	Remote string
	Cause  error
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("The remote %s has failed: %v.", e.Remote, e.Cause)
}

// Unwrap returns what the remote said.
func (e *RemoteError) Unwrap() error { return e.Cause }

// loadRemote has a remote load a model: the remote of an instance, or else the first that can.
func (n *Node) loadRemote(ctx context.Context, t Target, o LoadOptions) (supervisor.Info, error) {
	var chosen, first *supervisor.Spec
	for _, in := range n.supervisor.Instances() {
		if in.Spec.Remote == nil || in.Spec.Model.Key != t.Model.Key || t.Instance != "" && in.ID != t.Instance {
			continue
		}
		first = cmp.Or(first, in.Spec)
		if remote.Manages(in.Spec.Remote.Kind) && in.Away == "" && (chosen == nil || in.Spec.Remote.Prefer < chosen.Remote.Prefer) {
			chosen = in.Spec
		}
	}
	switch {
	case first == nil:
		return supervisor.Info{}, &catalog.NotFoundError{Name: t.Model.Key}
	case chosen == nil:
		return supervisor.Info{}, &NotManagedError{t.Model.Key, first.Remote.Name, first.Remote.Kind}
	}
	pinned := chosen.Remote.Peer && o.Pinned != nil && *o.Pinned
	if chosen.Remote.Peer {
		o.Pinned = nil
	}
	if o.isMoreThanContext() {
		return supervisor.Info{}, &NotChosenError{chosen.Remote.Name}
	}
	watch, note, begun := chosen.Remote.Server.(*remote.Watch), chosen.Recipe.(placed), time.Now()
	id, err := watch.Load(ctx, &note.model, o.ContextLength)
	if err == nil && pinned {
		err = watch.Pin(ctx, id, true)
	}
	if err != nil {
		return supervisor.Info{}, &RemoteError{chosen.Remote.Name, err}
	}
	watch.Refresh(ctx)
	for _, in := range n.supervisor.Instances() {
		if in.Spec.Remote != nil && in.Spec.Remote.Name == chosen.Remote.Name && in.Spec.Model.Key == t.Model.Key {
			in.LoadTime = time.Since(begun)
			return in, nil
		}
	}
	return supervisor.Info{}, &RemoteError{chosen.Remote.Name, fmt.Errorf("it has no model %s any more", note.model.ID)}
}

// pinRemote has another node of the cluster pin all its instances of a model, or not any more. Other remotes decide for themselves.
func (n *Node) pinRemote(ctx context.Context, in *supervisor.Info, pinned bool) error {
	on := in.Spec.Remote
	if !on.Peer {
		return &NotManagedError{in.Spec.Model.Key, on.Name, on.Kind}
	}
	watch, note := on.Server.(*remote.Watch), in.Spec.Recipe.(placed)
	if len(note.model.Instances) == 0 {
		return supervisor.UnknownInstance(in.ID)
	}
	for _, id := range note.model.Instances {
		if err := watch.Pin(ctx, id, pinned); err != nil {
			return &RemoteError{on.Name, err}
		}
	}
	watch.Refresh(ctx)
	return nil
}

// unloadRemote has a remote unload all its instances of a model.
func (n *Node) unloadRemote(ctx context.Context, in *supervisor.Info) error {
	on := in.Spec.Remote
	if !remote.Manages(on.Kind) {
		return &NotManagedError{in.Spec.Model.Key, on.Name, on.Kind}
	}
	watch, note := on.Server.(*remote.Watch), in.Spec.Recipe.(placed)
	if len(note.model.Instances) == 0 {
		return supervisor.UnknownInstance(in.ID)
	}
	for _, id := range note.model.Instances {
		if err := watch.Unload(ctx, id); err != nil {
			return &RemoteError{on.Name, err}
		}
	}
	watch.Refresh(ctx)
	return nil
}
