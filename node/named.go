package node

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/lmcaddy/lmcaddy/catalog"
)

// settingsOf is what the settings say of the model that has a key: by the key, else by another of the model's names, as
// requests may use them.
func (n *Node) settingsOf(s *Settings, key string) ModelSettings {
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

// means is the key of the model that the settings' name means, as far as the last look at the disk tells; else empty.
func (n *Node) means(name string) string {
	m, err := n.known(name)
	if err != nil {
		return ""
	}
	return m.Key
}

// aliases are the other names that the settings give to models, by key.
func (n *Node) aliases() map[string][]string {
	s := n.settings.Load()
	aliases := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		if ms := s.Models[name]; len(ms.Aliases) > 0 {
			key := n.means(name)
			aliases[key] = append(aliases[key], ms.Aliases...)
		}
	}
	return aliases
}

// warnIdle warns of settings that do nothing as things are: of models that aren't there, and folders that don't exist.
func (n *Node) warnIdle(s *Settings) {
	for _, dir := range s.ModelsDirs {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			n.log.Warn("a folder of models doesn't exist: correct its path (models_dir), or make it", "folder", dir)
		case err != nil:
			n.log.Warn("a folder of models can't be read", "folder", dir, "error", err)
		case !info.IsDir():
			n.log.Warn("what models_dir names is no folder: name the folder that the model files are in", "folder", dir)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Engines)) {
		if e := n.engines[name]; s.Engines[name].Path != "" && e.Find != nil {
			if _, err := e.Find(e.setup); err != nil {
				n.log.Warn("no model can be loaded", "error", err)
			}
		}
	}
	by := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		ms := s.Models[name]
		if key := n.warnUnknown("the settings of a model do nothing", name); key != "" && by[key] != "" {
			n.log.Warn("two blocks of settings are of one model, and one of them does nothing: put them together", "model", key,
				"blocks", []string{by[key], name})
		} else if key != "" {
			by[key] = name
		}
		if ms.Draft != "" {
			n.warnUnknown("a model can't be loaded without its draft model", s.resolve(ms.Draft))
		}
	}
}

// warnUnknown warns of a name that no model goes by, and gives the key of the model that does.
func (n *Node) warnUnknown(what, name string) (key string) {
	m, err := n.lookup(n.ctx, name)
	if missing, ok := errors.AsType[*catalog.NotFoundError](err); ok {
		n.log.Warn(what, "model", name, "reason", missing.Error())
	}
	return m.Key
}
