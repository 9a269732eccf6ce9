package node

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// Settings is what a configuration says. The zero value is a server that loads nothing by itself.
type Settings struct {
	Log *slog.Logger // where the node logs to while these settings are in force; nil: as before

	ModelsDirs     []string // further folders of models, beside the home's; absolute
	JIT            bool     // load a model on first use
	ListAll        bool     // GET /v1/models lists every model, not the loaded ones alone
	AnyName        bool     // a request for a model that isn't known, or for none, goes to the only one there is
	ReasoningField openai.ReasoningField

	IdleTTL      time.Duration // after which a model that was loaded on first use is unloaded; 0: never
	MaxLoaded    int           // instances at a time; 0: as many as memory holds
	MemoryBudget Budget        // that all instances may take together
	Queue        int           // waiting requests for each model; 0: no bound
	BodyMemory   int64         // bytes that the bodies of all requests may take together; 0: chosen by the machine's memory
	AbandonLoads bool          // end a load that nobody waits for any more
	StallTimeout time.Duration // how long an engine may get no further; 0: five minutes
	SlowClient   time.Duration // how long a client may take nothing of its answer; 0: a minute

	// PrivatePrompts has requests of different owners share no prompts that an engine has cached.
	PrivatePrompts bool

	Gates Gates // what is allowed of what is closed by default

	Hubs []fetch.Hub // that models may be downloaded from; the first serves identifiers without a URL

	Store StoreSettings

	Engines map[string]EngineSettings // by name
	Models  map[string]ModelSettings  // by key, or another of a model's names, in lower case
	Presets map[string]Preset         // by name
}

// Gates are what a configuration may open. They are closed by default.
type Gates struct {
	EphemeralMCP bool // native chat: MCP servers that a request names
	PluginMCP    bool // native chat: the MCP servers of mcp.json
	RemoteMCP    bool // /v1/responses: MCP servers that a request names
	RawGrammar   bool // chat and text completions: a grammar that a request brings
}

// Budget is how much memory may be taken: a share of the machine's, or a size. The zero value is no bound.
type Budget struct {
	Share float64 // of the machine's memory, and of that of its GPUs; 0 to 1
	Bytes int64   // used where Share is 0
}

// EngineSettings is what a configuration says of an engine.
type EngineSettings struct {
	Path     string   // of the executable; empty: where the engine looks for it, such as the selected runtime
	Parallel int      // requests at a time for each instance; 0: defaultParallel
	Args     []string // added to the arguments of every instance

	Unconfined bool     // run it without a sandbox, also where the system has one
	Readable   []string // files and folders that it may read, and execute, in its sandbox, beside those that it is known to need
}

// ModelSettings is what a configuration says of a model.
type ModelSettings struct {
	Aliases       []string // other names, each of which may have * in it
	ContextLength int      // tokens that one request gets; 0: chosen by the model
	Parallel      int      // requests at a time; 0: the engine's setting
	Draft         string   // the model that drafts for it, by any of its names; empty: none
	Preload       bool
	Pinned        bool           // it is never evicted
	TTL           *time.Duration // instead of IdleTTL, also where it was loaded by hand
	Args          []string       // added to the engine's arguments
}

// Validate tells what is wrong with the settings, if anything.
func (s Settings) Validate() error {
	for _, dir := range s.ModelsDirs {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("models_dir %s: the path must be absolute", dir)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Engines)) {
		if n := s.Engines[name].Parallel; n < 0 {
			return fmt.Errorf("engine %s: parallel %d: must be at least 1", name, n)
		}
	}
	if s.MaxLoaded < 0 || s.Queue < 0 || s.IdleTTL < 0 || s.StallTimeout < 0 || s.SlowClient < 0 {
		return errors.New("max_loaded, queue, idle_ttl, stall_timeout and slow_client_timeout must not be negative")
	}
	if s.BodyMemory < 0 {
		return errors.New("body_memory must not be negative")
	}
	if b := s.Store.Bounds; b.Age < 0 || b.Number < 0 || s.Store.TokenGrace < 0 {
		return errors.New("store: max_age, max_turns and token_grace must not be negative")
	}
	if b := s.MemoryBudget; b.Share < 0 || b.Share > 1 || b.Bytes < 0 {
		return errors.New("memory_budget: a share must be between 0% and 100%, a size above 0")
	}
	for _, h := range s.Hubs {
		if err := h.Validate(); err != nil {
			return err
		}
	}
	for name, p := range s.Presets {
		if err := p.validate(name); err != nil {
			return err
		}
	}
	names := map[string]string{}
	for key, m := range s.Models {
		for _, alias := range m.Aliases {
			if _, err := path.Match(alias, ""); err != nil {
				return fmt.Errorf("model %s: alias %q is not a pattern: use * for any characters", key, alias)
			}
			if other, ok := names[alias]; ok && other != key {
				return fmt.Errorf("alias %s: it is given to two models, %s and %s", alias, min(key, other), max(key, other))
			}
			names[alias] = key
		}
		if m.ContextLength < 0 || m.Parallel < 0 {
			return fmt.Errorf("model %s: context_length and parallel must not be negative", key)
		}
	}
	return nil
}

// resolve is the key that a name is an alias of, else the name. An exact alias goes before a pattern, and a longer pattern
// before a shorter one.
func (s *Settings) resolve(name string) string {
	best, found := "", name
	for key, m := range s.Models {
		for _, alias := range m.Aliases {
			if alias == name {
				return key
			}
			isCloser := len(alias) > len(best) || (len(alias) == len(best) && alias < best) // the same for every request
			if isCloser && isPattern(alias) {
				if ok, _ := path.Match(alias, name); ok {
					best, found = alias, key
				}
			}
		}
	}
	return found
}

// isPattern tells whether an alias stands for more than itself.
func isPattern(alias string) bool { return strings.ContainsAny(alias, "*?[") }
