package catalog

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
)

// hub collects the models of one repository in the Hugging Face hub's cache. Its files are links to blobs, by revision. A blob
// that is still being downloaded has no link. It uses the revision that refs/main names, or the newest that has a model.
func (w *walk) hub(p location, name string) error {
	publisher, repo, ok := strings.Cut(name, "--")
	if !ok {
		publisher, repo = local, name
	}
	at := p.into("snapshots", filepath.Join(p.real, "snapshots"))
	entries, err := os.ReadDir(at.dir)
	if err != nil {
		w.catalog.report(at.dir, err)
		return nil
	}
	before := len(w.found)
	for _, revision := range revisions(p.dir, entries) {
		next := at.into(revision, filepath.Join(at.real, revision))
		list, err := w.enter(next)
		if err != nil {
			return err
		}
		if list == nil {
			continue
		}
		of := found{layout: LayoutHub, publisher: publisher, repo: repo, scope: next.dir}
		if err := w.entries(next, list, of, nil); err != nil || len(w.found) > before {
			return err
		}
	}
	return nil
}

// maxRef bounds the size of a reference, in bytes.
const maxRef = 256

// revisions returns the snapshots of a repository in order of preference.
func revisions(dir string, entries []os.DirEntry) []string {
	type revision struct {
		name string
		at   int64
	}
	var all []revision
	main := ""
	if text, err := boundedfile.Read(filepath.Join(dir, "refs", "main"), maxRef); err == nil {
		main = strings.TrimSpace(string(text))
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		at := info.ModTime().UnixNano()
		if e.Name() == main {
			at = math.MaxInt64
		}
		all = append(all, revision{e.Name(), at})
	}
	slices.SortFunc(all, func(a, b revision) int {
		return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.name, b.name))
	})
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.name
	}
	return names
}
