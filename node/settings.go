package node

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Settings is what a configuration says. The zero value is a server that loads nothing by itself.
type Settings struct {
	Log *slog.Logger // where the node logs to while these settings are in force; nil: as before

	ModelsDirs     []string // further folders of models, beside the home's; absolute
	JIT            bool     // load a model on first use
	ListAll        bool     // GET /v1/models lists every model, not the loaded ones alone
	ReasoningField translate.ReasoningField

	LlamaServer EngineSettings
	Models      map[string]ModelSettings // by key
	Presets     map[string]Preset        // by name
}

// EngineSettings is what a configuration says of an engine.
type EngineSettings struct {
	Path     string   // of the executable; empty: the selected runtime, else the one on PATH
	Parallel int      // requests at a time for each instance; 0: defaultParallel
	Args     []string // added to the arguments of every instance
}

// ModelSettings is what a configuration says of a model.
type ModelSettings struct {
	ContextLength int // tokens that one request gets; 0: chosen by the model
	Parallel      int // requests at a time; 0: the engine's setting
	Preload       bool
	Args          []string // added to the engine's arguments
}

// Validate tells what is wrong with the settings, if anything.
func (s Settings) Validate() error {
	for _, dir := range s.ModelsDirs {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("models_dir %s: the path must be absolute", dir)
		}
	}
	if s.LlamaServer.Parallel < 0 {
		return fmt.Errorf("engine llama_server: parallel %d: must be at least 1", s.LlamaServer.Parallel)
	}
	for name, p := range s.Presets {
		if err := p.validate(name); err != nil {
			return err
		}
	}
	for key, m := range s.Models {
		if m.ContextLength < 0 || m.Parallel < 0 {
			return fmt.Errorf("model %s: context_length and parallel must not be negative", key)
		}
	}
	return nil
}
