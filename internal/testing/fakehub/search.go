package fakehub

import (
	"cmp"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Card is what the hub says of a repository in a search, beside its files.
type Card struct {
	Downloads int64     `json:"downloads"`
	Likes     int64     `json:"likes"`
	Updated   time.Time `json:"lastModified"`
	// Gated is how users are let in: "auto" or "manual"; empty: the repository is open.
	Gated string `json:"gated"`
	// Tags are added to those that follow from the files: gguf, and safetensors.
	Tags []string `json:"tags"`
	Task string   `json:"pipeline_tag"`
}

// Describe sets a repository's card.
func (h *Hub) Describe(repo string, c Card) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := strings.ToLower(repo)
	if old := h.repos[key]; old != nil {
		r := *old
		r.card = c
		h.repos[key] = &r
	}
}

// tags are those of a repository.
func (r *repo) tags() []string {
	tags := slices.Clone(r.card.Tags)
	for ext, tag := range map[string]string{".gguf": "gguf", ".safetensors": "safetensors"} {
		if slices.ContainsFunc(r.files, func(f *file) bool { return path.Ext(f.path) == ext }) && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags
}

// search serves GET /api/models as the real hub does: a bare array; the names of its repositories contain all words of search; filter
// is a tag; of the fields beyond the id there are only those in expand[], or a few if there are none. It sorts by downloads only.
func (h *Hub) search(w http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	if sort := query.Get("sort"); sort != "" && sort != "downloads" {
		problem(w, http.StatusBadRequest, "this hub sorts by downloads only")
		return
	}
	h.mu.Lock()
	var found []*repo
	for _, r := range h.repos {
		words := strings.Fields(strings.ToLower(query.Get("search")))
		misses := func(word string) bool { return !strings.Contains(strings.ToLower(r.name), word) }
		if tag := query.Get("filter"); !slices.ContainsFunc(words, misses) && (tag == "" || slices.Contains(r.tags(), tag)) {
			found = append(found, r)
		}
	}
	h.mu.Unlock()
	slices.SortFunc(found, func(a, b *repo) int {
		return cmp.Or(cmp.Compare(b.card.Downloads, a.card.Downloads), cmp.Compare(a.name, b.name))
	})
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil {
		found = found[:min(max(limit, 0), len(found))]
	}
	list := []map[string]any{}
	for _, r := range found {
		list = append(list, r.line(query["expand[]"]))
	}
	writeJSON(w, list)
}

// line is what a search says of a repository.
func (r *repo) line(fields []string) map[string]any {
	var gated any = false
	if r.card.Gated != "" {
		gated = r.card.Gated
	}
	all := map[string]any{
		"downloads": r.card.Downloads, "likes": r.card.Likes, "lastModified": r.card.Updated.UTC().Format("2006-01-02T15:04:05.000Z"),
		"gated": gated, "tags": r.tags(), "private": false,
	}
	if r.card.Task != "" {
		all["pipeline_tag"] = r.card.Task
	}
	if len(fields) == 0 {
		fields = []string{"downloads", "likes", "tags", "pipeline_tag", "private"}
	}
	line := map[string]any{"_id": r.commit[:24], "id": r.name}
	for _, f := range fields {
		if value, ok := all[f]; ok {
			line[f] = value
		}
	}
	return line
}
