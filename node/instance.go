package node

import (
	"context"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

// usualTemplate is the usual number of tokens that a model's template adds to a prompt.
const usualTemplate = 64

// context returns the context that each prompt of a request takes. A prompt has at most as many tokens as its body has
// bytes. If the request doesn't limit the completion, nothing is assumed about its length.
func (n Need) context() supervisor.ContextNeed {
	completion := max(0, n.Completion)
	return supervisor.ContextNeed{
		Likely: n.Bytes/(bytesPerToken*max(1, n.Prompts)) + completion,
		Safe:   n.Bytes + usualTemplate + completion,
	}
}

// Outgrown records that an instance refused a prompt as too long for its context. It reports whether the model has an
// instance with a longer context, which the next Acquire will prefer.
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

// numbered finds an instance by its number: key:1 is the first instance, whose id is the bare key. The key may be any of
// the model's names.
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

// InstanceID returns the id of the instance with a name. A name that matches no instance is returned unchanged.
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
