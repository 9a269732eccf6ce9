package catalog

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog/mlx"
	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

// limits bound the work of a scan in each root.
type limits struct {
	folders int
	files   int // that may be models
	entries int // of one folder, that are relevant
}

var defaultLimits = limits{folders: 200_000, files: 100_000, entries: 200_000}

type entry struct {
	name string
	kind fs.FileMode // its type
}

type folderList struct {
	entries []entry // sorted by name
	cut     bool    // there were more than the limit
}

func (f folderList) holds(name string) bool {
	_, ok := f.find(name)
	return ok
}

func (f folderList) holdsFolder(name string) bool {
	e, ok := f.find(name)
	return ok && (e.kind.IsDir() || e.kind&fs.ModeSymlink != 0)
}

func (f folderList) find(name string) (entry, bool) {
	i, ok := slices.BinarySearchFunc(f.entries, name, func(e entry, name string) int { return cmp.Compare(e.name, name) })
	if !ok {
		return entry{}, false
	}
	return f.entries[i], true
}

// readAtOnce is how many entries of a folder are read at a time, since there may be millions.
const readAtOnce = 4096

// list reads the relevant entries of a folder.
func (w *walk) list(dir string) (list folderList, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return list, err
	}
	defer f.Close()
	for !list.cut {
		if err := w.ctx.Err(); err != nil {
			return list, err
		}
		some, err := f.ReadDir(readAtOnce)
		for _, e := range some {
			if !w.matters(e.Name(), e.Type()) {
				continue
			}
			if list.cut = len(list.entries) == w.catalog.limits.entries; list.cut {
				break
			}
			list.entries = append(list.entries, entry{e.Name(), e.Type()})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return list, err
		}
	}
	slices.SortFunc(list.entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return list, nil
}

func (w *walk) matters(name string, kind fs.FileMode) bool {
	switch {
	case strings.HasPrefix(name, "."):
		return false
	case kind.IsDir(), kind&fs.ModeSymlink != 0:
		return true
	case !kind.IsRegular():
		return false
	default:
		_, isModel := w.config.filesOf(name)
		return isModel || isCacheNote(name) || mlx.IsFile(name)
	}
}

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

// Files that llama.cpp puts beside the models in its cache: a manifest for each repository and tag, and metadata for each file.
const (
	manifestPrefix = "manifest="
	noteEnding     = ".json"
	etagEnding     = ".etag"
	maxNote        = 64 << 10 // bytes
)

// isCacheNote reports whether a name is that of such a file.
func isCacheNote(name string) bool {
	if strings.HasPrefix(name, manifestPrefix) {
		return strings.HasSuffix(name, noteEnding)
	}
	for _, ending := range []string{noteEnding, etagEnding} {
		if model, ok := strings.CutSuffix(name, ending); ok && filename.IsGGUF(model) {
			return true
		}
	}
	return false
}

// notes tell which repositories the files of a folder come from, if it is llama.cpp's cache. It may be nil.
type notes struct {
	dir       string
	report    func(path string, reason error)
	list      *folderList
	manifests [][2]string // publishers and repositories
}

func newNotes(dir string, list *folderList, report func(path string, reason error)) *notes {
	n := &notes{dir: dir, list: list, report: report}
	for _, e := range list.entries {
		name, ok := strings.CutPrefix(e.name, manifestPrefix)
		if !ok {
			continue
		}
		if parts := strings.Split(name, "="); len(parts) == 3 && parts[0] != "" && parts[1] != "" {
			n.manifests = append(n.manifests, [2]string{parts[0], parts[1]})
		}
	}
	return n
}

// repository returns of with the repository that a file was downloaded from, if that is known.
func (n *notes) repository(file string, of found) found {
	if n == nil || !n.list.holds(file+noteEnding) && !n.list.holds(file+etagEnding) && len(n.manifests) == 0 {
		return of
	}
	publisher, repo, ok := n.ofFile(file)
	if !ok {
		return of
	}
	rest := file
	if prefix := publisher + "_" + repo + "_"; len(file) > len(prefix) && strings.EqualFold(file[:len(prefix)], prefix) {
		rest = file[len(prefix):]
	}
	return found{
		layout: LayoutCache, publisher: publisher, repo: repo, label: filename.Stem(rest),
		scope: n.dir + "\x00" + publisher + "/" + repo, // no path contains a zero byte
	}
}

func (n *notes) ofFile(file string) (publisher, repo string, ok bool) {
	for _, m := range n.manifests {
		if strings.HasPrefix(file, m[0]+"_"+m[1]+"_") && len(m[0]+m[1]) > len(publisher+repo) {
			publisher, repo, ok = m[0], m[1], true
		}
	}
	if ok {
		return publisher, repo, true
	}
	if n.list.holds(file + noteEnding) {
		var note struct {
			URL string `json:"url"`
		}
		path := filepath.Join(n.dir, file+noteEnding)
		err := boundedfile.ReadJSON(path, maxNote, &note)
		if openfiles.AreExhausted(err) {
			n.report(path, err) // without it the model would get another key
		}
		if publisher, repo, ok := repositoryOfURL(note.URL); err == nil && ok {
			return publisher, repo, true
		}
	}
	if !n.list.holds(file+noteEnding) && !n.list.holds(file+etagEnding) {
		return "", "", false
	}
	return repositoryOfName(file)
}

// repositoryOfURL parses https://<hub>/<publisher>/<repo>/resolve/….
func repositoryOfURL(from string) (publisher, repo string, ok bool) {
	u, err := url.Parse(from)
	if err != nil {
		return "", "", false
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 4 || parts[2] != "resolve" || parts[0] == "" || parts[1] == "" {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// repositoryOfName splits <publisher>_<repo>_<file> by a guess: most repositories end in -GGUF.
func repositoryOfName(file string) (publisher, repo string, ok bool) {
	publisher, rest, ok := strings.Cut(file, "_")
	if !ok || publisher == "" {
		return "", "", false
	}
	if i := strings.Index(strings.ToLower(rest), "-gguf_"); i > 0 {
		return publisher, rest[:i+len("-gguf")], true
	}
	repo, _, ok = strings.Cut(rest, "_")
	return publisher, repo, ok && repo != ""
}
