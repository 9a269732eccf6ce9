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
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

// PublicHub is the default hub.
const PublicHub = "https://huggingface.co"

// publicAliases are other hosts of the public hub.
var publicAliases = []string{"hf.co", "www.huggingface.co"}

// Config is a server with the API of huggingface.co.
type Config struct {
	URL   string // such as https://huggingface.co; its models are at URL/publisher/repository
	Token string // sent to this host only; empty: none
	// Mirror says that the hub replaces huggingface.co, like HF_ENDPOINT: models with URLs there are downloaded from this hub.
	Mirror bool
	// Stall is how long the hub, or a server that it redirects to, may send nothing before a request is canceled and retried;
	// 0: one minute.
	Stall time.Duration
}

// Validate checks the hub's URL.
func (h Config) Validate() error {
	_, err := newHub(h)
	return err
}

// Hub is a validated Hub.
type Hub struct {
	Base   *url.URL // without a trailing slash
	token  string
	mirror bool
	Stall  time.Duration // 0: that of limits
}

func newHub(h Config) (*Hub, error) {
	base, err := url.Parse(strings.TrimRight(strings.TrimSpace(h.URL), "/"))
	if err != nil {
		return nil, fmt.Errorf("hub %s: %w", h.URL, err)
	}
	if err := outbound.Check(base); err != nil {
		return nil, fmt.Errorf("hub: %w", err)
	}
	if h.Stall < 0 {
		return nil, fmt.Errorf("hub %s: stall_timeout must not be negative", h.URL)
	}
	if base.RawQuery != "" || base.Fragment != "" || strings.Contains(base.Path, "//") {
		return nil, fmt.Errorf("hub %s: an address with a host and perhaps a path is needed, and no more", h.URL)
	}
	return &Hub{Base: base, token: strings.TrimSpace(h.Token), mirror: h.Mirror, Stall: h.Stall}, nil
}

func (h *Hub) String() string { return h.Base.String() }

// Name returns the hub's host, by which users know it.
func (h *Hub) Name() string { return h.Base.Host }

// Page returns the URL of a repository for people.
func (h *Hub) Page(repo string) string { return h.String() + "/" + repo }

// at returns a URL below the hub. It escapes the segments.
func (h *Hub) at(segments ...string) string {
	var b strings.Builder
	b.WriteString(h.String())
	for _, segment := range segments {
		for part := range strings.SplitSeq(segment, "/") {
			b.WriteString("/" + url.PathEscape(part))
		}
	}
	return b.String()
}

// Resolve returns the URL of a file. A slash in the name of the revision is escaped.
func (h *Hub) Resolve(repo, revision, file string) string {
	return h.at(repo, "resolve") + "/" + url.PathEscape(revision) + strings.TrimPrefix(h.at(file), h.String())
}

// Client returns a client for the hub. It uses https, follows safe redirects only, and sends the token to nobody but the hub.
func (h *Hub) Client(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: &bearer{hub: h, next: transport}, CheckRedirect: outbound.CheckRedirect}
}

// bearer adds the hub's token to requests to the hub. It isn't set as a header of the request, because net/http forwards
// headers to subdomains and other ports on redirects.
type bearer struct {
	hub  *Hub
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (b *bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Del("Authorization")
	request.Header.Del("Referer") // don't tell other hosts the hub's address
	request.Header.Set("User-Agent", outbound.UserAgent)
	if b.hub.token != "" && outbound.SameOrigin(request.URL, b.hub.Base) {
		request.Header.Set("Authorization", "Bearer "+b.hub.token)
	}
	return b.next.RoundTrip(request)
}

// hubs is the list of configured hubs.
type hubs struct {
	all []*Hub // the first serves repositories that are requested without a URL
	// searched are those whose models a search finds: the configured ones, or else the public hub.
	searched []*Hub
}

func newHubs(configured []Config) (*hubs, error) {
	var all hubs
	for _, c := range configured {
		h, err := newHub(c)
		if err != nil {
			return nil, err
		}
		all.all = append(all.all, h)
	}
	all.searched = all.all
	if all.find(PublicHub) == nil {
		public, err := newHub(Config{URL: PublicHub})
		if err != nil {
			return nil, err
		}
		all.all = append(all.all, public)
	}
	if len(all.searched) == 0 {
		all.searched = all.all
	}
	return &all, nil
}

func (hs *hubs) find(base string) *Hub {
	for _, h := range hs.all {
		if h.String() == base {
			return h
		}
	}
	return nil
}

// of returns the hub that a URL belongs to, and the path below the hub, still escaped. It returns nil for an unknown hub.
func (hs *hubs) of(u *url.URL) (*Hub, string) {
	var best *Hub
	for _, h := range hs.all {
		under := u.EscapedPath() == h.Base.EscapedPath() || strings.HasPrefix(u.EscapedPath(), h.Base.EscapedPath()+"/")
		if under && outbound.SameOrigin(u, h.Base) && (best == nil || len(h.Base.Path) > len(best.Base.Path)) {
			best = h
		}
	}
	if best == nil {
		return nil, ""
	}
	rest := strings.TrimPrefix(u.EscapedPath(), best.Base.EscapedPath())
	if best.String() == PublicHub && best.token == "" {
		for _, h := range hs.all {
			if h.mirror {
				return h, rest
			}
		}
	}
	return best, rest
}

func (hs *hubs) names() string {
	var names []string
	for _, h := range hs.all {
		names = append(names, h.String())
	}
	return strings.Join(names, ", ")
}

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
