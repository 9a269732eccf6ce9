package node

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/filename"
)

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

// aliases returns the aliases of each model, by key.
func (n *Names) aliases() map[string][]string {
	s := n.settings.Load()
	aliases := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		if ms := s.Models[name]; len(ms.Aliases) > 0 {
			key := n.means(name)
			aliases[key] = append(aliases[key], ms.Aliases...)
		}
	}
	for _, m := range n.custom.list() {
		if _, ok := n.Custom(m.Name); ok {
			key := n.means(m.Model)
			aliases[key] = append(aliases[key], m.Name)
		}
	}
	return aliases
}

// warnIdle warns about settings that have no effect: for models that aren't installed, folders that don't exist, and gates
// that let nothing through.
func (n *Node) warnIdle(s *Settings) {
	n.warnIdleMCP(s)
	n.warnIdleWarm(s)
	n.Names.warnTaken()
	for _, dir := range s.ModelsDirs {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			n.log.Warn("a models folder doesn't exist: correct its path (models_dir), or create it", "folder", dir)
		case err != nil:
			n.log.Warn("a models folder can't be read", "folder", dir, "error", err)
		case !info.IsDir():
			n.log.Warn("models_dir is not a folder: give the folder that contains the model files", "folder", dir)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Engines)) {
		if e := n.Engines.byName[name]; s.Engines[name].Path != "" && e.Find != nil {
			if _, err := e.Find(e.setup); err != nil {
				n.log.Warn("no model can be loaded", "error", err)
			}
		}
	}
	by := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		ms := s.Models[name]
		if key := n.Names.warnUnknown("the settings of a model have no effect", name); key != "" && by[key] != "" {
			n.log.Warn("two blocks of settings are for the same model, and one of them has no effect: merge them", "model", key,
				"blocks", []string{by[key], name})
		} else if key != "" {
			by[key] = name
			n.Names.warnKeys(key, ms.Aliases)
		}
		if _, unknown := n.catalog.Companion(s.resolve(ms.Draft), filename.Drafter, n.Names.means(name)); ms.Draft != "" && unknown != nil {
			n.Names.warnUnknown("a model can't be loaded without its draft model", s.resolve(ms.Draft))
		}
	}
}

// warnKeys warns about aliases of a model that are keys of others: a key goes before an alias.
func (n *Names) warnKeys(key string, aliases []string) {
	for _, alias := range aliases {
		if m, err := n.catalog.Known(alias); err == nil && isKeyOf(&m, alias) && m.Key != key {
			n.log.Warn("an alias has no effect, since it is the key of another model: choose another alias", "alias", alias, "model", key)
		}
	}
}

// warnUnknown warns if no model has a name. Otherwise it returns the model's key.
func (n *Names) warnUnknown(what, name string) (key string) {
	asked := n.remotes.Asked()
	m, err := n.lookup(n.ctx, name)
	missing, ok := errors.AsType[*catalog.NotFoundError](err)
	if ok && n.remotes.Await(n.ctx, asked) {
		m, err = n.lookup(n.ctx, name)
		missing, ok = errors.AsType[*catalog.NotFoundError](err)
	}
	if ok {
		n.log.Warn(what, "model", name, "reason", missing.Error())
	}
	return m.Key
}
