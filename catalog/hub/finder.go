// Package hub finds models on servers with the API of huggingface.co, and chooses what can be run here of a repository's files. It writes
// no files.
//
// A [Finder] knows the configured hubs. It interprets the names that clients request, lists repositories, and searches. [Choose] picks the
// files of a request; [AllChoices] says what else there is.
package hub

import (
	"context"
	_ "embed" // for wellknown.json
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

// Finder finds models at the configured hubs, and chooses what this machine can run.
type Finder struct {
	limits    Limits
	known     atomic.Pointer[hubs]
	searching chan struct{} // a semaphore of searches

	Transport *http.Transport
	// Memory returns the number of bytes available to a model; nil or 0: unknown.
	Memory func() int64
	// Formats returns those that an engine on this machine runs now; nil or none: all.
	Formats func() []catalog.Format
	Prefers catalog.Format // that is chosen where there are several, if an engine runs it; empty: GGUF
}

// Limits bound requests to hubs; tests change them.
type Limits struct {
	// Stall is how long a server may send nothing before the connection is closed.
	Stall time.Duration
	// FirstRetry is the delay of the first retry, which doubles with each; it must be one second at most. Tries and Patience bound the
	// retries while a client waits.
	FirstRetry time.Duration
	Tries      int
	Patience   time.Duration
	// Search is how long each step of a search may take: the question to all hubs, and the look at what they found.
	Search time.Duration
}

// DefaultLimits are those of a running server.
var DefaultLimits = Limits{
	Stall:      60 * time.Second,
	FirstRetry: 500 * time.Millisecond,
	Tries:      3,
	Patience:   5 * time.Second,
	Search:     15 * time.Second,
}

// NewFinder returns a finder for some hubs. huggingface.co is added if it is missing.
func NewFinder(configured []Config, l Limits) (*Finder, error) {
	f := &Finder{limits: l, Transport: outbound.NewTransport(), searching: make(chan struct{}, searches)}
	return f, f.SetHubs(configured)
}

// SetHubs replaces the hubs. Running downloads are not affected.
func (s *Finder) SetHubs(configured []Config) error {
	known, err := newHubs(configured)
	if err != nil {
		return err
	}
	s.known.Store(known)
	return nil
}

// Parse interprets a requested name: the URL of a known hub, an entry of the built-in list, or publisher/repository.
func (s *Finder) Parse(model string) (Ref, error) { return s.known.Load().parse(model) }

// First returns the hub that serves names without a URL.
func (s *Finder) First() *Hub { return s.known.Load().all[0] }

// HubOf returns the hub with a base URL.
func (s *Finder) HubOf(base string) (*Hub, error) {
	if h := s.known.Load().find(base); h != nil {
		return h, nil
	}
	return nil, Errorf(Invalid,
		"The hub %s that this model comes from is configured no more. Add it with `hub %s`, and resume the download.",
		base, base)
}

func (s *Finder) api(h *Hub) *api {
	return &api{hub: h, client: h.Client(s.Transport), limits: s.limits}
}

// ListFiles returns the files of a repository, in a revision or, if that is empty, in the default one.
func (s *Finder) ListFiles(ctx context.Context, h *Hub, repo, revision string) (Listing, error) {
	return s.api(h).list(ctx, repo, revision)
}

// Machine returns what is known of this machine now, except the files that it has.
func (s *Finder) Machine() Machine {
	m := Machine{prefers: s.Prefers}
	if s.Formats != nil {
		m.formats = s.Formats()
	}
	if s.Memory != nil {
		m.Memory = s.Memory()
	}
	return m
}

// Entry is an entry of the built-in list of models.
type Entry struct {
	ID   string `json:"id"`   // publisher/name, lower case: what clients request, and the model's key
	Repo string `json:"repo"` // publisher/repository on the hub
	Type string `json:"type"` // "llm" or "embedding"
	// MLX is another repository, with the same model in the MLX format. It is empty if there is none, or if the engine for that
	// format can't do with the model what llama-server can, such as see images or find its calls.
	MLX string `json:"mlx,omitempty"`
}

//go:embed wellknown.json
var wellKnownJSON []byte

// WellKnown returns the built-in list of popular open models. It must not be modified.
var WellKnown = sync.OnceValue(func() []Entry {
	var all []Entry
	if err := json.Unmarshal(wellKnownJSON, &all); err != nil {
		panic("wellknown.json: " + err.Error()) // a test reads it
	}
	return all
})

// NamesOf returns the names by which a repository can be requested without a URL: its own, and those in the list.
func NamesOf(repo string) []string {
	names := []string{repo}
	for _, e := range WellKnown() {
		if strings.EqualFold(e.Repo, repo) || strings.EqualFold(e.MLX, repo) {
			names = append(names, e.ID)
		}
	}
	return names
}

// SameModel returns other names, as publisher/name, for the model that a name means, from the built-in list. The name may lack
// the ending of its repository, like a model's key.
func SameModel(name string) []string {
	if entry, ok := wellKnown(name); ok {
		if entry.MLX != "" {
			return []string{entry.ID, entry.Repo, entry.MLX}
		}
		return []string{entry.ID, entry.Repo}
	}
	var names []string
	for _, e := range WellKnown() {
		if strings.EqualFold(filename.TrimEnding(e.Repo, "-gguf"), filename.TrimEnding(name, "-gguf")) || strings.EqualFold(e.MLX, name) {
			names = append(names, e.ID)
		}
	}
	return names
}

// wellKnown finds an entry by its ID, with or without the publisher, in any case.
func wellKnown(name string) (Entry, bool) {
	name = strings.ToLower(name)
	all := WellKnown()
	i := slices.IndexFunc(all, func(e Entry) bool {
		_, bare, _ := strings.Cut(e.ID, "/")
		return e.ID == name || bare == name
	})
	if i < 0 {
		return Entry{}, false
	}
	return all[i], true
}
