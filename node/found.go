package node

import (
	"maps"
	"slices"

	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// FoundEngine is what would be started of an engine for a model that is loaded now.
type FoundEngine struct {
	Name       string `json:"name"`
	Executable string `json:"executable,omitempty"` // empty: there is none
	Problem    string `json:"problem,omitempty"`    // why there is none
	Sandbox    string `json:"sandbox"`              // its mechanism, "off" with a reason, or "not available" and why
}

// FindEngines looks for all engines, without starting one. They are sorted by name.
func (en *Engines) Find() []FoundEngine {
	all := make([]FoundEngine, 0, len(en.byName))
	for _, name := range slices.Sorted(maps.Keys(en.byName)) {
		e := en.byName[name]
		found := FoundEngine{Name: name, Sandbox: process.SandboxState()}
		path, err := e.Find(e.setup)
		if found.Executable = path; err != nil {
			found.Executable, found.Problem = "", err.Error()
		}
		switch settings := en.settings.Load().Engines[name]; {
		case e.NoSandbox != "":
			found.Sandbox = process.SandboxOff + ": " + e.NoSandbox
		case settings.Sandbox == schedule.Off:
			found.Sandbox = process.SandboxOff
		}
		all = append(all, found)
	}
	return all
}
