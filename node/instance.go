package node

import (
	"context"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

// usualTemplate is how many tokens a model's template usually adds to a prompt.
const usualTemplate = 64

// context is how much context a request takes for each of its prompts. A prompt has no more tokens than its body has bytes;
// that a request wants fewer tokens than the context has room for isn't assumed where it doesn't say how many.
func (n Need) context() supervisor.ContextNeed {
	completion := max(0, n.Completion)
	return supervisor.ContextNeed{
		Likely: n.Bytes/(bytesPerToken*max(1, n.Prompts)) + completion,
		Safe:   n.Bytes + usualTemplate + completion,
	}
}

// Outgrown says that an instance refused a request's prompt, which is longer than its context. It tells whether the model
// has an instance with a longer one, and has the next Acquire prefer such a one.
func (n *Node) Outgrown(t Target, d *Demand, by supervisor.Info) bool {
	length := by.Spec.ContextLength
	if t.Instance != "" || length < d.context.Likely && d.outgrown {
		return false
	}
	for _, in := range n.supervisor.Instances() {
		if in.Spec.Model.Key == t.Model.Key && in.Spec.ContextLength > length && !in.Status.IsLeaving() {
			d.context.Likely, d.outgrown = length+1, true
			return true
		}
	}
	return false
}

// numbered finds an instance by its place among those of its model: the first, whose id is the key alone, is key:1. The key
// may be any of the model's names.
func (n *Node) numbered(ctx context.Context, name string) (Target, bool) {
	at := strings.LastIndexByte(name, ':')
	if at < 1 {
		return Target{}, false
	}
	number, err := strconv.Atoi(name[at+1:])
	if err != nil || number < 1 || strconv.Itoa(number) != name[at+1:] {
		return Target{}, false
	}
	model, err := n.Find(ctx, name[:at])
	if err != nil || model.Instance != "" { // a number of a number
		return Target{}, false
	}
	id := model.Model.Key
	if number > 1 {
		id += name[at:]
	}
	for _, in := range n.supervisor.Instances() {
		if in.ID == id && in.Spec.Model.Key == model.Model.Key {
			return Target{in.Spec.Model, in.ID}, true
		}
	}
	return Target{}, false
}

// InstanceID is the id of the instance that goes by a name: an id as it is, also of one that isn't loaded.
func (n *Node) InstanceID(ctx context.Context, name string) string {
	for _, in := range n.supervisor.Instances() {
		if in.ID == name {
			return name
		}
	}
	if t, ok := n.numbered(ctx, name); ok {
		return t.Instance
	}
	return name
}
