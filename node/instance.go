package node

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/remotes"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
)

const usualTemplate = 64 // the usual number of tokens that a model's template adds to a prompt

// Needs records the context that each prompt of a request takes, which decides between several instances of a model. A prompt has at most
// as many tokens as its body has bytes. If the request doesn't limit the completion, nothing is assumed about its length.
func (d *Demand) Needs(need access.Need) {
	completion := max(0, need.Completion)
	d.Context = schedule.ContextNeed{
		Likely: need.Bytes/(access.BytesPerToken*max(1, need.Prompts)) + completion,
		Safe:   need.Bytes + usualTemplate + completion,
	}
}

// Outgrown records that an instance refused a prompt as too long. It reports whether the next Acquire will prefer a longer context.
func (ld *Loads) Outgrown(t Target, d *Demand, by supervisor.Info) bool {
	length := by.Spec.ContextLength
	if t.Instance != "" || length == 0 || length < d.Context.Likely && d.outgrown {
		return false
	}
	for _, in := range ld.instancesOf(t.Model.Key) {
		if in.Spec.ContextLength > length && !in.Status.IsLeaving() && in.Away == "" {
			d.Context.Likely, d.outgrown = length+1, true
			return true
		}
	}
	return false
}

// HasOther reports whether a request that an instance hasn't answered can be answered by another one that is there.
func (ld *Loads) HasOther(t Target, d *Demand, by *supervisor.Info) bool {
	if t.Instance != "" {
		return false
	}
	return slices.ContainsFunc(ld.instancesOf(t.Model.Key), func(in supervisor.Info) bool {
		return in.Gen != by.Gen && in.Status == schedule.Ready && in.Away == "" && !slices.Contains(d.Tried, in.Gen)
	})
}

// numbered finds an instance by its number: key:1 is the first, whose id is the bare key, which may be any of the model's names.
func (n *Names) numbered(name string) (Target, bool) {
	name = strings.TrimSpace(name)
	at := strings.LastIndexByte(name, ':')
	if at < 1 {
		return Target{}, false
	}
	number, err := strconv.Atoi(name[at+1:])
	if err != nil || number < 1 || strconv.Itoa(number) != name[at+1:] {
		return Target{}, false
	}
	model, err := n.spelled(name[:at])
	if err != nil || model.Instance != "" { // a number of a number
		return Target{}, false
	}
	id := model.Model.Key
	if number > 1 {
		id += name[at:]
	}
	for _, in := range n.instancesOf(model.Model.Key) {
		if in.ID == id {
			return Target{Model: in.Spec.Model, Instance: in.ID}, true
		}
	}
	return Target{}, false
}

// InstanceID returns the id of the instance with a name: its id, its number, or an alias or another name of a model that has one
// instance. A key is an id, and nothing else: a client that unloads the first instance twice must not hit the second. A name that
// matches no instance is returned unchanged.
func (n *Names) InstanceID(ctx context.Context, name string) string {
	if slices.ContainsFunc(n.supervisor.Instances(), func(in supervisor.Info) bool { return in.ID == name }) {
		return name
	}
	target, err := n.Find(ctx, name)
	switch {
	case err != nil:
		return name
	case target.Instance != "":
		return target.Instance
	case catalog.Normal(name) == target.Model.Key:
		return target.Model.Key
	}
	instances := slices.DeleteFunc(n.instancesOf(target.Model.Key), func(in supervisor.Info) bool { return in.Status.IsLeaving() })
	if len(instances) == 1 {
		return instances[0].ID
	}
	return name
}

// Keep sets how long an instance may be idle; 0: unlimited; unless it is wanted by hand, preloaded or pinned.
func (ld *Loads) Keep(in supervisor.Info, ttl time.Duration) {
	if from, ok := in.Spec.Recipe.(recipe); !ok || from.options.ByHand || in.Spec.Pinned {
		return
	}
	ld.respecify(in.Gen, func(s *schedule.Spec) {
		from, _ := s.Recipe.(recipe)
		from.options.TTL = &ttl
		s.TTL, s.Recipe = ttl, from
	})
}

// Pin sets whether an instance may be evicted, until it is unloaded: also after a crash, and under new settings. One that is pinned isn't
// unloaded for idleness either, unless a ttl was given. If the instance is on a remote, the error may be a [*translate.Error].
func (ld *Loads) Pin(ctx context.Context, in supervisor.Info, pinned bool) error {
	if in.Spec.Remote != nil {
		return remotes.Pin(ctx, &in, pinned)
	}
	ld.respecify(in.Gen, func(s *schedule.Spec) {
		from, ok := s.Recipe.(recipe)
		if !ok {
			return
		}
		ms := ld.names.settingsOf(from.settings, s.Model.Key)
		from.options.Pinned, ms.Pinned = &pinned, pinned
		s.Pinned, s.AutoRestart, s.Recipe = pinned, from.options.ByHand || pinned || ms.Preload, from
		s.TTL = timeToLive(from.settings, ms, from.options)
	})
	return nil
}

// respecify changes the Spec of an instance. It waits for new settings that are being applied, whose Specs were made of the old one.
func (ld *Loads) respecify(gen uint64, change func(*schedule.Spec)) {
	ld.applying.Lock()
	defer ld.applying.Unlock()
	ld.supervisor.Handle(schedule.Respecified{Gen: gen, Change: change})
}

// IDTaken is the error of a load, or of a name for a model, that chooses an identifier which already means something else.
func IDTaken(id string) error {
	return translate.NewError(translate.KindConflict, "identifier_in_use", "identifier",
		fmt.Sprintf("The identifier %q is in use: it is the name of a model or of an instance. Choose another.", id))
}

// checkID returns an error if an identifier for a new instance of the model with a key is a name of a model, in any case, or the number of
// an instance, as key:2 is. Only the model itself may have its own numbers, from 2 on: they are what its instances are called anyway. The
// supervisor compares the identifier with other instances.
func (n *Names) checkID(id, key string) error {
	if id == "" || catalog.Normal(id) == key {
		return nil
	}
	if n.isModelName(id) {
		return IDTaken(id)
	}
	at := strings.LastIndexByte(id, ':')
	if at < 1 {
		return nil
	}
	number, err := strconv.Atoi(id[at+1:])
	if err != nil || number > 1 && catalog.Normal(id[:at]) == key || !n.isModelName(id[:at]) {
		return nil
	}
	return IDTaken(id)
}

// isModelName reports whether a name leads to a model, or would if another name or model were gone.
func (n *Names) isModelName(name string) bool {
	if _, unknown := n.known(name); unknown == nil {
		return true
	}
	for spelling := range spellings(name) {
		if _, custom := n.custom.get(spelling); custom || n.settings.Load().isAlias(spelling) {
			return true
		}
	}
	return false
}

// identify records an identifier that a load has chosen, so that it goes before later models' names, and forgets those that are gone.
func (n *Names) identify(id string) {
	if id == "" {
		return
	}
	n.chosen.Range(func(key, _ any) bool {
		if _, ok := n.instance(key.(string)); !ok {
			n.chosen.Delete(key)
		}
		return true
	})
	n.chosen.Store(catalog.Normal(id), struct{}{})
}

// isAliasOfAnother reports whether a name is an alias of another model than the instance's. A load can't choose an alias, but a reload can
// bring one: then the configuration counts, since that is the operator's. A pattern that fits doesn't: it is for names that nothing has.
func (n *Names) isAliasOfAnother(name string, in supervisor.Info) bool {
	of, ok := n.settings.Load().alias(name)
	if !ok {
		return false
	}
	key := n.means(of)
	return key != "" && key != in.Spec.Model.Key
}

func (n *Names) warnTaken() {
	n.chosen.Range(func(key, _ any) bool {
		if in, ok := n.instance(key.(string)); ok && n.isAliasOfAnother(in.ID, in) {
			n.log.Warn("an alias is also the identifier of an instance of another model: requests for it go to the alias's model; unload "+
				"the instance, or choose another alias", "alias", in.ID, "instance", in.ID, "model", in.Spec.Model.Key)
		}
		return true
	})
}
