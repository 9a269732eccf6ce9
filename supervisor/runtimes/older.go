package runtimes

import (
	"cmp"
	"fmt"
	"slices"
)

// TooOld says which runtime of an engine is in use, and what to do since it is too old for a model. configured is as in Find; version is what
// the runtime reports, if that is known. It is a sentence without its full stop, and without a capital.
func (s *Store) TooOld(engine, configured, version string) string {
	used, err := s.Find(engine, configured)
	if err != nil {
		return ""
	}
	version = cmp.Or(used.Version, version)
	what := fmt.Sprintf("%s %s, which is selected,", engine, version)
	if version == "" {
		what = used.Path
	}
	get := fmt.Sprintf("get the newest with \"lmcaddy runtime get %s\"", engine)
	if used.Source == Configured {
		get = "update it, or leave its path out of the Caddyfile and " + get
	}
	installed, _ := s.installed() // without them, the advice is to get one
	i := slices.IndexFunc(installed, func(r Runtime) bool {
		return r.Engine == engine && version != "" && compareVersions(r.Version, version) > 0
	})
	if i >= 0 { // they are in order, the newest first
		get = fmt.Sprintf("%s is installed: select it with \"lmcaddy runtime select %s\"", installed[i].Version, installed[i].Name)
	}
	return what + " is too old for this model; " + get
}
