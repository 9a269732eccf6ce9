package node

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
)

// ModelDetails is what is known of a model beyond [ModelState].
type ModelDetails struct {
	catalog.Details
	Page       string        // where it was downloaded, without a secret; empty: unknown
	Revision   string        // that was downloaded; empty: unknown
	Engine     string        // that runs it
	Settings   ModelSettings // those in force: the model's own, and those of its engine
	Configured bool          // it has settings of its own
	IsWarm     bool          // states of its prompts are saved
}

// Details reads what is known of a model that can be used.
func (n *Node) Details(m *catalog.Model) (ModelDetails, error) {
	if m.IsRemote {
		return ModelDetails{Engine: remoteEngine.Name, Settings: n.Names.settingsOf(n.settings.Load(), m.Key)}, nil
	}
	read, err := catalog.ReadDetails(m)
	if err != nil {
		return ModelDetails{}, &BrokenModelError{m.Key, m.Path, err}
	}
	s, e := n.settings.Load(), n.Engines.of(m)
	d := ModelDetails{Details: read, Engine: e.Name, Settings: n.Names.settingsOf(s, m.Key)}
	d.Configured = !reflect.ValueOf(d.Settings).IsZero()
	d.IsWarm = !s.isCold(d.Settings)
	es := s.Engines[e.Name]
	d.Settings.Parallel = cmp.Or(d.Settings.Parallel, es.Parallel)
	d.Settings.Args = slices.Concat(es.Args, d.Settings.Args)
	if job, ok := n.Downloads.of(m); ok {
		d.Page, d.Revision = job.Page(), job.Revision
	}
	return d, nil
}

// of returns the completed download that a model's file is from.
func (dl *Downloads) of(m *catalog.Model) (fetch.Job, bool) {
	all := dl.list()
	i := slices.IndexFunc(all, func(j fetch.Job) bool {
		return j.State == fetch.Completed && slices.ContainsFunc(j.Files, func(file string) bool {
			return dl.pathOf(file) == m.Path || m.Format == catalog.FormatMLX && isBelow(m.Path, dl.pathOf(file))
		})
	})
	if i < 0 {
		return fetch.Job{}, false
	}
	return all[i], true
}

// list returns the downloads, the newest first; none before the first settings.
func (dl *Downloads) list() []fetch.Job {
	jobs := dl.jobs.Load()
	if jobs == nil {
		return nil
	}
	all := jobs.List()
	slices.Reverse(all)
	return all
}
