package node

import (
	"maps"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate/wire"
	"github.com/lmcaddy/lmcaddy/warm"
)

// WarmSettings say which states of prompts are kept in files.
type WarmSettings struct {
	Off       bool          // none, and those that there are are deleted
	Size      int64         // of all files together, in bytes; 0: depends on the disk
	Daily     int64         // written in a day, in bytes; 0: depends on Size
	MaxAge    time.Duration // of a state that isn't used; 0: unlimited
	SaveAfter time.Duration // that an instance is unused; 0: nothing is saved
	MinTokens int           // of a state
}

// ofStore returns the settings of the store of states.
func (w WarmSettings) ofStore() warm.Settings {
	return warm.Settings{Off: w.Off, Size: w.Size, Daily: w.Daily, MaxAge: w.MaxAge}
}

// isCold reports whether no states of a model's prompts are kept.
func (s *Settings) isCold(m ModelSettings) bool {
	return s.Warm.Off || m.Warm != nil && !*m.Warm
}

// isSlotted reports whether requests for a model choose their slots, unless arguments keep them from it.
func (e *engine) isSlotted(m *catalog.Model) bool {
	_, pins := e.Wire.(wire.Pinner)
	return pins && m.Type == catalog.TypeLLM
}

// PromptKey returns the key of the chains by which prompts for a model are told apart. It returns false if nothing depends on
// them, because the engine chooses the slots.
func (en *Engines) PromptKey(m *catalog.Model) (prefix.Key, bool) {
	return en.warm.Key(), en.of(m).isSlotted(m)
}

// warnIdleWarm warns about settings because of which states of prompts aren't kept, or that keep nothing from being kept.
func (n *Node) warnIdleWarm(s *Settings) {
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		ms := s.Models[name]
		m, err := n.Names.lookup(n.ctx, name)
		if err != nil {
			continue
		}
		e := n.Engines.of(&m)
		_, saves := e.process.(process.Saver)
		switch {
		case ms.Warm != nil && !saves:
			n.log.Warn("warm has no effect for a model: its engine can't save states of conversations; leave it out",
				"model", name, "engine", e.Name)
		case ms.Warm != nil && *ms.Warm && s.Warm.Off:
			n.log.Warn("warm on has no effect for a model: states of conversations are switched off for all (warm off)", "model", name)
		case !s.isCold(ms):
			n.warnUnsavable(e, ms.Args, "model", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.Engines.byName)) {
		if !s.Warm.Off {
			n.warnUnsavable(n.Engines.byName[name], s.Engines[name].Args, "engine", name)
		}
	}
}

// warnUnsavable warns if the installed engine, or one with these arguments, saves no states, unless no engine of the kind does.
func (n *Node) warnUnsavable(e *engine, args []string, of, name string) {
	saver, ok := e.process.(process.Saver)
	if !ok {
		return
	}
	build, err := e.process.Probe(n.ctx)
	if err != nil {
		return // it isn't installed
	}
	can := func(args ...string) bool {
		return saver.CanSave(&schedule.Spec{Engine: e.Name, Model: catalog.Model{Type: catalog.TypeLLM}, Args: args}, build)
	}
	switch {
	case !can():
		if of == "engine" {
			n.log.Info("states of conversations aren't kept: this version of the engine can't save them", "engine", name, "version", build.Version)
		}
	case !can(args...):
		useless := slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return can(arg) })
		n.log.Warn("states of conversations aren't kept, because arguments keep the engine from saving them or make them useless: leave these "+
			"arguments out, or switch warm off", of, name, "arguments", useless)
	}
}

// ClearWarm deletes the saved states of the models and owners that match. It returns how many they were, and their bytes. What engines
// hold in their slots is saved again after the next request for it.
func (st *Stores) ClearWarm(match func(key, owner string) bool) (states int, bytes int64) {
	states, bytes = st.warm.ClearSome(func(s warm.Listed) bool { return match(s.Model, s.Owner) })
	st.supervisor.Cleared(match)
	return states, bytes
}
