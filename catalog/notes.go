package catalog

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/boundedfile"
	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
)

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
