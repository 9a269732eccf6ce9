package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/node/remotes"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// Names finds the models and instances that names stand for.
type Names struct {
	*base
	remotes *remotes.Remotes
	custom  customModels // names that clients have given models
	chosen  sync.Map     // identifiers that loads have chosen, in lower case
}

// Target is the model or instance that a request's model name refers to.
type Target struct {
	Model    catalog.Model
	Instance string // set if the name is an instance's id

	Adapter *catalog.Model // that changes the model's weights for the request; nil: none
}

// BrokenModelError is returned when a model's file can't be used.
type BrokenModelError struct {
	Key, Path string
	Reason    error
}

func (e *BrokenModelError) Error() string {
	return fmt.Sprintf("The model %s can't be used: its file %s is broken (%v).", e.Key, filepath.Base(e.Path), e.Reason)
}

func (e *BrokenModelError) Unwrap() error { return e.Reason }

// Find returns the model or instance with a name, as clients of any dialect write it. The first of these counts:
//
//   - the id of an instance, or its number: key:2 is the second, and key:1 the first, whose id is the key. A key stands for any instance;
//   - a model's key;
//   - an alias of the settings (also before an identifier that a load has chosen), or a name that a client has given;
//   - the key without its publisher, and identifiers that it can be downloaded by;
//   - the same in the forms of Ollama's names: with ":latest", or with a quantization as the tag;
//   - an alias that is a pattern, since it is for names that nothing has.
//
// What follows a + is the name of an adapter that belongs to the model. Case makes no difference, and neither does how accents are
// composed. The error is a [*catalog.NotFoundError], a [*BrokenModelError] or the context's.
func (n *Names) Find(ctx context.Context, name string) (Target, error) {
	asked := n.remotes.Asked()
	target, err := n.find(ctx, name)
	missing, isUnknown := errors.AsType[*catalog.NotFoundError](err)
	if isUnknown && len(missing.Ambiguous) == 0 && n.remotes.Await(ctx, asked) {
		return n.Find(ctx, name)
	}
	if at := strings.LastIndexByte(name, '+'); isUnknown && at > 0 {
		if base, failed := n.find(ctx, name[:at]); failed == nil {
			adapter, unknown := n.catalog.Companion(strings.TrimSuffix(name[at+1:], ":latest"), filename.Adapter, base.Model.Key)
			if unknown == nil && slices.Contains(adapter.Of, base.Model.Key) {
				base.Adapter = &adapter.Model
				return base, nil
			}
		}
	}
	return target, err
}

// WithAdapter returns a target with the adapter that the settings name for its model, unless it has one. The error is a [*translate.Error].
func (n *Names) WithAdapter(ctx context.Context, t Target) (Target, error) {
	name := n.settingsOf(n.settings.Load(), t.Model.Key).Adapter
	if t.Adapter != nil || t.Model.IsRemote || name == "" {
		return t, nil
	}
	adapter, unknown := n.catalog.Companion(name, filename.Adapter, t.Model.Key)
	if unknown != nil {
		_, _ = n.catalog.Lookup(ctx, name) // which looks at the disk
		adapter, unknown = n.catalog.Companion(name, filename.Adapter, t.Model.Key)
	}
	if unknown != nil {
		return t, translate.Invalid("unsupported_model", "model", "The adapter "+name+", which the option lora of the model "+t.Model.Key+
			" names, is not known: put its GGUF file beside the model's, or leave the option out.")
	}
	t.Adapter = &adapter.Model
	return t, nil
}

// FindNothing takes as long as Find with a name that nothing has. So the time of an answer doesn't tell that there is what it conceals.
func (n *Names) FindNothing(ctx context.Context, name string) { _, _ = n.Find(ctx, "\x00"+name) }

// find is Find for what is there now.
func (n *Names) find(ctx context.Context, name string) (Target, error) {
	target, err := n.knows(name)
	wanted := target.Model.Key
	if err != nil {
		wanted = n.resolve(name)
	}
	if target.Instance != "" {
		return target, nil
	}
	m, failed := n.catalog.Lookup(ctx, wanted) // looks at the disk if the model isn't known, or has changed
	if _, unknown := errors.AsType[*catalog.NotFoundError](failed); unknown || failed == nil && err != nil {
		if target, err = n.knows(name); err == nil && target.Instance == "" {
			m, failed = n.catalog.Lookup(ctx, target.Model.Key)
		}
		missing, isUnknown := errors.AsType[*catalog.NotFoundError](cmp.Or(err, failed))
		if isUnknown && target.Instance == "" && len(missing.Ambiguous) == 0 {
			if in, ok := n.outlived(name); ok {
				return Target{Model: in.Spec.Model, Instance: in.ID}, nil
			}
		}
		if err != nil || target.Instance != "" {
			return target, err
		}
	}
	switch {
	case failed != nil:
		return Target{}, failed
	case m.Err == nil:
		return Target{Model: m}, nil
	}
	if in, ok := n.outlived(m.Key); ok {
		return Target{Model: in.Spec.Model, Instance: in.ID}, nil
	}
	return Target{}, &BrokenModelError{m.Key, m.Path, m.Err}
}

// outlived returns an instance of this machine by any name that its model had as long as its file was there.
func (n *Names) outlived(name string) (supervisor.Info, bool) {
	of := map[string]supervisor.Info{}
	var models []catalog.Model
	for _, in := range n.supervisor.Instances() {
		if m := in.Spec.Model; !m.IsRemote && in.Status == schedule.Ready && of[m.Key].Spec == nil {
			of[m.Key] = in
			models = append(models, m)
		}
	}
	if len(models) == 0 {
		return supervisor.Info{}, false
	}
	names := []string{name}
	for spelling := range spellings(name) {
		if key := n.given(spelling); key != "" {
			names = append(names, namesOf(key)...)
		}
		names = append(names, namesOf(spelling)...)
	}
	if key, ok := n.settings.Load().pattern(name); ok {
		names = append(names, namesOf(key)...)
	}
	m, err := catalog.Among(models, names[0], names[1:]...)
	return of[m.Key], err == nil
}

// knows is Find by the last scan of the disk. The model may be broken. The error is a [*catalog.NotFoundError].
func (n *Names) knows(name string) (Target, error) {
	var unknown error
	for spelling := range spellings(name) {
		target, err := n.spelled(spelling)
		missing, failed := errors.AsType[*catalog.NotFoundError](err)
		if !failed {
			return target, nil
		}
		if missing.Name = name; unknown == nil || len(missing.Ambiguous) > 0 {
			unknown = missing
		}
	}
	if key, ok := n.settings.Load().pattern(name); ok {
		if m, err := n.known(key); err == nil {
			return Target{Model: m}, nil
		}
	}
	return Target{}, unknown
}

// spelled is knows for a name in one spelling, without patterns.
func (n *Names) spelled(name string) (Target, error) {
	if _, isChosen := n.chosen.Load(catalog.Normal(name)); isChosen {
		if in, ok := n.instance(name); ok && !n.isAliasOfAnother(name, in) {
			return Target{Model: in.Spec.Model, Instance: in.ID}, nil
		}
	}
	m, err := n.catalog.Known(name)
	if err == nil && isKeyOf(&m, name) {
		return Target{Model: m}, nil
	}
	if of := n.given(name); of != "" {
		m, err := n.known(of)
		return Target{Model: m}, err
	}
	if err == nil {
		return Target{Model: m}, nil
	}
	if in, ok := n.instance(name); ok { // a second instance, whose id isn't a key, or one whose model was deleted
		return Target{Model: in.Spec.Model, Instance: in.ID}, nil
	}
	if t, ok := n.numbered(name); ok {
		return t, nil
	}
	m, err = n.synonym(name)
	return Target{Model: m}, err
}

func isKeyOf(m *catalog.Model, name string) bool {
	name = catalog.Normal(name)
	return name == m.Key || name == m.FullKey()
}

// known returns the model of the last scan of the disk that a name in any spelling belongs to, whatever else has been given that name.
func (n *Names) known(name string) (catalog.Model, error) {
	m, unknown := n.catalog.Known(name)
	if unknown == nil {
		return m, nil
	}
	for spelling := range spellings(name) {
		if m, err := n.synonym(spelling); err == nil {
			return m, nil
		}
	}
	return catalog.Model{}, unknown
}

// synonym is known for a name in one spelling.
func (n *Names) synonym(name string) (catalog.Model, error) {
	names := namesOf(name) // which takes a while
	return n.catalog.Known(names[0], names[1:]...)
}

// lookup is known, but looks at the disk if necessary.
func (n *Names) lookup(ctx context.Context, name string) (catalog.Model, error) {
	m, unknown := n.known(name)
	if unknown != nil {
		_, err := n.catalog.Lookup(ctx, name)
		if _, missing := errors.AsType[*catalog.NotFoundError](err); err != nil && !missing {
			return catalog.Model{}, err
		}
		if m, err = n.known(name); err != nil {
			return catalog.Model{}, err
		}
	}
	return n.catalog.Lookup(ctx, m.Key)
}

func (n *Names) instance(id string) (supervisor.Info, bool) {
	id = catalog.Normal(id)
	for _, in := range n.supervisor.Instances() {
		if catalog.Normal(in.ID) == id {
			return in, true
		}
	}
	return supervisor.Info{}, false
}

// namesOf returns a model's name, followed by its synonyms: the identifiers that it can be downloaded by.
func namesOf(name string) []string {
	names := []string{name}
	repo, variant, several := strings.Cut(name, "@")
	for _, other := range append([]string{repo}, hub.SameModel(repo)...) {
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

// spellings are the names that a client may mean by a name: the name itself, and then what it stands for if it has the form of Ollama's
// names. Clients list the models in one dialect and ask for them in another.
func spellings(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if !yield(name) || strings.HasSuffix(name, ":") {
			return
		}
		others := append([]string{ollama.Canonical(name)}, ollama.Synonyms(name)...)
		if id, ok := LibraryModel(name); ok {
			others = append(others, id)
		}
		for i, other := range others {
			if other != name && !slices.Contains(others[:i], other) && !yield(other) {
				return
			}
		}
	}
}

// LibraryModel returns the identifier in the built-in list of models that a name of Ollama's own library stands for.
func LibraryModel(name string) (id string, ok bool) {
	parsed := ollama.ParseName(name)
	wanted := parsed.Squashed()
	if wanted == "" {
		return "", false
	}
	all := hub.WellKnown()
	i := slices.IndexFunc(all, func(e hub.Entry) bool {
		_, bare, _ := strings.Cut(e.ID, "/")
		return ollama.Squash(bare) == wanted
	})
	if i < 0 {
		return "", false
	}
	if _, quantization := parsed.Split(); quantization != "" {
		return all[i].ID + "@" + quantization, true
	}
	return all[i].ID, true
}

// FindDraft returns the draft model with a name: a drafter beside the model, a model, or another drafter. Errors are those of Find.
func (n *Names) FindDraft(ctx context.Context, model, name string) (Target, error) {
	name = n.resolve(name)
	if found, err := n.catalog.Companion(name, filename.Drafter, model); err == nil && slices.Contains(found.Of, model) {
		return Target{Model: found.Model}, nil
	}
	target, err := n.Find(ctx, name)
	if missing, ok := errors.AsType[*catalog.NotFoundError](err); ok && len(missing.Ambiguous) == 0 {
		switch found, failed := n.catalog.Companion(name, filename.Drafter, model); {
		case failed == nil:
			return Target{Model: found.Model}, nil
		case len(failed.Ambiguous) > 0:
			return Target{}, failed
		}
	}
	return target, err
}

// Preset returns the defaults that the settings give requests for the model with a key; nil: none.
func (n *Names) Preset(key string) Preset {
	s := n.settings.Load()
	return s.Presets[n.settingsOf(s, key).Preset]
}

// settingsOf returns the settings of the model with a key. They may be listed under the key or under another of its names.
func (n *Names) settingsOf(s *Settings, key string) ModelSettings {
	if ms, ok := s.Models[key]; ok {
		return ms
	}
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		if n.means(name) == key {
			return s.Models[name]
		}
	}
	return ModelSettings{}
}

// means returns the key of the model with a name, according to the last scan of the disk, or "".
func (n *Names) means(name string) string {
	m, err := n.known(name)
	if err != nil {
		return ""
	}
	return m.Key
}

func (n *Names) aliases() map[string][]string {
	s := n.settings.Load()
	aliases := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		if ms := s.Models[name]; len(ms.Aliases) > 0 {
			key := n.means(name)
			aliases[key] = append(aliases[key], ms.Aliases...)
		}
	}
	for _, m := range n.AllCustom() {
		if _, ok := n.Custom(m.Name); ok {
			key := n.means(m.Model)
			aliases[key] = append(aliases[key], m.Name)
		}
	}
	return aliases
}
