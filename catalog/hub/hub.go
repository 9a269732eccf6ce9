package hub

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

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
