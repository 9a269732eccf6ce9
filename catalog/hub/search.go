package hub

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

const (
	// MaxResults is the highest number of models that a search returns.
	MaxResults = 50
	// maxQuery bounds a query, in bytes.
	maxQuery = 200
	// searches is the number of concurrent searches, and lookups that of repositories that a search reads at a time. A hub counts requests.
	searches, lookups = 2, 4
)

// Result is a repository with a model that can be run here.
type Result struct {
	Name        string    // by which it can be requested
	Repo        string    // publisher/repository on the hub, in the hub's spelling
	Hub         string    // its base URL
	Folder      string    // publisher/name; it determines the key of the model
	IsWellKnown bool      // Name is in the built-in list
	Downloads   int64     // of the last month, by the hub; -1: unknown
	Likes       int64     // -1: unknown
	Updated     time.Time // zero: unknown
	Gated       bool      // the publisher lets only some users download it
	Format      catalog.Format

	// What a request for Name would download; SizeBytes is -1 if the hub doesn't say.
	Quantization string
	SizeBytes    int64
	Fits         bool // this machine's memory; if no quantization fits, SizeBytes is of the one that is best otherwise
}

// Query is a search for models.
type Query struct {
	Words string
	Limit int // number of results, up to MaxResults; 0: ten
	// May reports whether the model of a folder, publisher/name, may be listed; nil: all.
	May func(folder string) bool
}

// Search finds models that can be run here, at all hubs: those of the built-in list first, then the most downloaded. The names of models
// match all words of the query. The error is an [*Error] or that of the context; it isn't returned if one of several hubs has answered.
func (s *Finder) Search(ctx context.Context, q Query) ([]Result, error) {
	words := strings.Join(strings.Fields(q.Words), " ")
	if words == "" || len(words) > maxQuery || strings.ContainsFunc(words, filename.IsInvisible) {
		return nil, Errorf(Invalid, "A search needs some words of a model's name, such as \"qwen3 4b\", of at most %d characters.",
			maxQuery).About("query")
	}
	limit := min(cmp.Or(max(0, q.Limit), 10), MaxResults)
	select {
	case s.searching <- struct{}{}:
		defer func() { <-s.searching }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m := s.Machine()
	found, err := s.candidates(ctx, words, limit, m)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(c candidate) bool { return q.May != nil && !q.May(c.Folder) })
	return s.lookAt(ctx, found[:min(atMost(limit), len(found))], limit, m)
}

// inTime returns a context for a step of a search, which ends like one of a server that sends nothing: a client is waiting, and so are
// the other searches.
func (s *Finder) inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.limits.Search, fmt.Errorf("%w within %v", outbound.ErrStalled, s.limits.Search))
}

// atMost is how many candidates are asked for and looked at for a number of results, since some can't be run.
func atMost(limit int) int { return 2*limit + 8 }

// candidate is a Result in the making.
type candidate struct {
	Result
	hub  *Hub
	tags []string
}

// candidates returns the models that may be results, best first.
func (s *Finder) candidates(ctx context.Context, words string, limit int, m Machine) ([]candidate, error) {
	known := s.known.Load()
	var found []candidate
	for _, e := range WellKnown() {
		name := strings.ToLower(e.ID + " " + e.Repo)
		isMissing := func(word string) bool { return !strings.Contains(name, word) }
		if !slices.ContainsFunc(strings.Fields(strings.ToLower(words)), isMissing) {
			c := candidate{hub: known.all[0], Result: Result{
				Name: e.ID, Repo: e.Repo, Folder: e.ID, IsWellKnown: true, Downloads: -1,
				Likes: -1,
			}}
			if e.MLX != "" && m.PrefersMLX() {
				c.Repo = e.MLX
			}
			found = append(found, c)
		}
	}
	var mu sync.Mutex
	var all []candidate
	var failures []error
	inTime, stop := s.inTime(ctx)
	defer stop()
	var asking sync.WaitGroup
	for i, h := range known.searched {
		for _, f := range []catalog.Format{catalog.FormatGGUF, catalog.FormatMLX} {
			if !m.runs(f) {
				continue
			}
			asking.Go(func() {
				some, err := s.ask(inTime, h, i == 0, f, words, limit)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failures = append(failures, err)
				}
				all = append(all, some...)
			})
		}
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(all) == 0 && len(failures) > 0 {
		return nil, AsError(failures[0])
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Downloads, a.Downloads), cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Hub, b.Hub))
	})
	return merged(found, all), nil
}

// merged adds the hubs' candidates to the well-known ones, which learn from them what the hub says.
func merged(found, all []candidate) []candidate {
	for _, c := range all {
		i := slices.IndexFunc(found, func(o candidate) bool { return o.hub == c.hub && strings.EqualFold(o.Repo, c.Repo) })
		switch {
		case i < 0:
			found = append(found, c)
		case found[i].IsWellKnown:
			known := &found[i]
			known.Downloads, known.Likes, known.Updated, known.Gated, known.tags = c.Downloads, c.Likes, c.Updated, c.Gated, c.tags
		}
	}
	return found
}

// unrunnable are the hub's words for tasks of models that no engine here runs, though they may be in files of the same format.
var unrunnable = []string{
	"text-to-image", "image-to-image", "unconditional-image-generation", "text-to-video", "image-to-video", "video-to-video", "text-to-3d",
	"image-to-3d", "text-to-speech", "text-to-audio", "audio-to-audio", "automatic-speech-recognition", "audio-classification",
	"image-classification", "object-detection", "image-segmentation", "depth-estimation", "robotics", "translation",
}

// ask has a hub search for models of a format. isFirst says that names without a URL are those of this hub.
func (s *Finder) ask(ctx context.Context, h *Hub, isFirst bool, f catalog.Format, words string, limit int) ([]candidate, error) {
	query := url.Values{
		"search": {words}, "filter": {string(f)}, "sort": {"downloads"}, "direction": {"-1"}, "limit": {strconv.Itoa(atMost(limit))},
		"expand[]": {"downloads", "likes", "lastModified", "gated", "tags", "pipeline_tag"},
	}
	var list []struct {
		ID        string    `json:"id"`
		Downloads int64     `json:"downloads"`
		Likes     int64     `json:"likes"`
		Updated   time.Time `json:"lastModified"`
		Gated     any       `json:"gated"` // false, or how users are let in
		Tags      []string  `json:"tags"`
		Task      string    `json:"pipeline_tag"`
	}
	if _, err := s.api(h).get(ctx, h.at("api", "models")+"?"+query.Encode(), "the search for "+strconv.Quote(words), &list); err != nil {
		switch kindOf(err) {
		case ModelNotFound:
			err = Errorf(HubFailed, "%s has no search. Give a model's name there as publisher/repository, or its URL.", h.Name())
		case Denied:
			err = Errorf(Denied, "%s refuses to search: it needs a token, or another one, in `hub %s { token … }` or HF_TOKEN.",
				h.Name(), h)
		}
		return nil, err
	}
	var found []candidate
	for _, e := range list {
		publisher, repo, ok := strings.Cut(e.ID, "/")
		if !ok || CheckRepo(publisher, repo) != nil || slices.Contains(unrunnable, e.Task) {
			continue
		}
		name := e.ID
		if !isFirst {
			name = h.Page(e.ID)
		}
		c := candidate{hub: h, tags: e.Tags, Result: Result{
			Name: name, Repo: e.ID, Hub: h.String(), Folder: e.ID, Downloads: e.Downloads, Likes: e.Likes, Updated: e.Updated,
			Gated: e.Gated != nil && e.Gated != false, Format: f,
		}}
		if found = append(found, c); len(found) == atMost(limit) {
			break
		}
	}
	return found, nil
}

// lookAt asks the hubs what would be downloaded of each candidate, and returns as many as fit the limit. Those that turn out to have
// no model that can be run are left out.
func (s *Finder) lookAt(ctx context.Context, found []candidate, limit int, m Machine) ([]Result, error) {
	inTime, stop := s.inTime(ctx)
	defer stop()
	results := []Result{}
	places := make(chan struct{}, lookups)
	for len(found) > 0 && len(results) < limit {
		batch := found[:min(limit-len(results), len(found))]
		usable := make([]bool, len(batch))
		var looking sync.WaitGroup
		for i := range batch {
			looking.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				usable[i] = s.measure(inTime, &batch[i], m)
			})
		}
		looking.Wait()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for i := range batch {
			if usable[i] {
				results = append(results, batch[i].Result)
			}
		}
		found = found[len(batch):]
	}
	return results, nil
}

// measure finds out what would be downloaded of a candidate. It returns false if there is nothing that can be run. If the hub doesn't
// say, such as of a gated model, the size stays unknown.
func (s *Finder) measure(ctx context.Context, c *candidate, m Machine) bool {
	c.Hub, c.SizeBytes, c.Fits = c.hub.String(), -1, true
	l := Listing{Repo: c.Repo}
	if slices.Contains(c.tags, mlx) {
		l.library = mlx
	}
	var err error
	if l.Files, err = s.api(c.hub).tree(ctx, c.Repo, defaultRevision); err != nil {
		c.Format = cmp.Or(c.Format, catalog.FormatGGUF)
		return kindOf(err) != ModelNotFound && kindOf(err) != Unsafe
	}
	m.Have = func([]RemoteFile) bool { return false }
	chosen, err := Choose(l, Wish{}, m)
	if kindOf(err) == TooLarge && err != nil {
		c.Fits, m.Memory = false, 0
		chosen, err = Choose(l, Wish{}, m)
	}
	if err != nil {
		return false
	}
	c.Quantization, c.SizeBytes, c.Format = chosen.Quantization, 0, catalog.FormatMLX
	for _, f := range chosen.Files {
		c.SizeBytes += f.Size
		if filename.IsGGUF(f.Path) {
			c.Format = catalog.FormatGGUF
		}
	}
	return true
}
