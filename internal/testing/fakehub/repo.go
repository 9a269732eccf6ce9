package fakehub

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // a commit ID
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// repo is a repository with its latest commit. Requests read it without a lock, so a repo in Hub.repos is immutable and is
// replaced by another.
type repo struct {
	name   string
	commit string
	files  []*file
	count  int // number of commits
	card   Card
}

type file struct {
	path        string
	content     Content
	sha256, git string
	listed      int64 // the size in the tree
}

// large reports whether a file is in large file storage.
func (f *file) large() bool {
	ext := path.Ext(f.path)
	return f.content.Size() >= 1<<10 || ext == ".gguf" || ext == ".safetensors"
}

func (f *file) tag() string { return `"` + f.sha256 + `"` }

// put sets the repository of a name. h.mu is held.
func (h *Hub) put(r *repo) {
	slices.SortFunc(r.files, func(a, b *file) int { return cmp.Compare(a.path, b.path) })
	key := strings.ToLower(r.name)
	if old := h.repos[key]; old != nil {
		r.count, r.card = old.count, old.card
	}
	r.count++
	sum := sha1.Sum(fmt.Appendf(nil, "%s %d", r.name, r.count)) //nolint:gosec // as above
	r.commit = hex.EncodeToString(sum[:])
	h.repos[key] = r
}

// Lie makes the tree list a wrong size for a file.
func (h *Hub) Lie(repo, path string, size int64) {
	h.change(repo, path, func(f *file) { f.listed = size })
}

// LieSum makes the tree list a wrong SHA-256 for a file.
func (h *Hub) LieSum(repo, path, sum string) {
	h.change(repo, path, func(f *file) { f.sha256 = sum })
}

// Replace changes the content of a file, but not its entry in the tree or its ETag.
func (h *Hub) Replace(repo, path string, content Content) {
	h.change(repo, path, func(f *file) { f.content = content })
}

func (h *Hub) change(repo, name string, change func(*file)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := strings.ToLower(repo)
	old := h.repos[key]
	if old == nil {
		return
	}
	r := *old
	r.files = slices.Clone(old.files)
	for i, f := range r.files {
		if f.path == name {
			changed := *f
			change(&changed)
			r.files[i] = &changed
		}
	}
	h.repos[key] = &r
}

// find returns a repository and the rest of a path that begins with its name.
func (h *Hub) find(escaped string) (*repo, []string) {
	segments := strings.Split(strings.Trim(escaped, "/"), "/")
	if len(segments) < 2 {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := make([]string, 0, len(segments))
	for _, s := range segments[2:] {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return nil, nil
		}
		rest = append(rest, plain)
	}
	return h.repos[strings.ToLower(segments[0]+"/"+segments[1])], rest
}

// knows reports whether a name is a revision of a repository.
func (r *repo) knows(revision string) bool {
	return revision == "main" || revision == r.commit || strings.HasPrefix(revision, "refs/")
}

// file returns a file of the repository.
func (r *repo) file(name string) *file {
	i := slices.IndexFunc(r.files, func(f *file) bool { return f.path == name })
	if i < 0 {
		return nil
	}
	return r.files[i]
}

// api serves /api/models/.
func (h *Hub) api(w http.ResponseWriter, request *http.Request) {
	r, rest := h.find(strings.TrimPrefix(request.URL.EscapedPath(), "/api/models/"))
	if r == nil {
		w.Header().Set("X-Error-Code", "RepoNotFound")
		problem(w, http.StatusNotFound, "Repository not found")
		return
	}
	switch {
	case len(rest) == 0, len(rest) == 2 && rest[0] == "revision" && r.knows(rest[1]):
		writeJSON(w, map[string]any{"id": r.name, "modelId": r.name, "sha": r.commit, "private": false, "gated": false})
	case len(rest) >= 2 && rest[0] == "tree" && r.knows(rest[1]):
		h.tree(w, request, r)
	default:
		w.Header().Set("X-Error-Code", "RevisionNotFound")
		problem(w, http.StatusNotFound, "Invalid rev id")
	}
}

// tree sends a page of the tree.
func (h *Hub) tree(w http.ResponseWriter, request *http.Request, r *repo) {
	h.mu.Lock()
	size := h.pageSize
	h.mu.Unlock()
	from, _ := strconv.Atoi(request.URL.Query().Get("cursor"))
	from = min(max(from, 0), len(r.files))
	to := min(from+size, len(r.files))
	page := []map[string]any{}
	for _, f := range r.files[from:to] {
		line := map[string]any{"type": "file", "path": f.path, "oid": f.git, "size": f.listed}
		if f.large() {
			line["lfs"] = map[string]any{"oid": f.sha256, "size": f.listed, "pointerSize": 134}
		}
		page = append(page, line)
	}
	if from == 0 {
		page = append(page, map[string]any{"type": "directory", "path": "folder", "oid": r.commit, "size": 0})
	}
	if to < len(r.files) {
		next := *request.URL
		query := next.Query()
		query.Set("cursor", strconv.Itoa(to))
		next.RawQuery = query.Encode()
		w.Header().Set("Link", fmt.Sprintf(`<%s%s>; rel="next"`, h.URL, next.RequestURI()))
	}
	writeJSON(w, page)
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(value)
}

func problem(w http.ResponseWriter, status int, message string) {
	w.Header().Set("X-Error-Message", message)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}
