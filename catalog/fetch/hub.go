package fetch

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

// PublicHub is the hub that is asked when no other is configured.
const PublicHub = "https://huggingface.co"

// publicAliases are further hosts of the public hub.
var publicAliases = []string{"hf.co", "www.huggingface.co"}

// Hub is a place to fetch models from, which speaks the API of huggingface.co.
type Hub struct {
	URL   string // such as https://huggingface.co; its models are at URL/publisher/repository
	Token string // sent to this host alone; empty: none
	// Mirror says that the hub stands in for huggingface.co, as HF_ENDPOINT does: models given by a URL there are fetched here.
	Mirror bool
	// Stall is how long the hub, or a server that it redirects to, may say nothing before a request is given up and tried
	// again; 0: a minute.
	Stall time.Duration
}

// Validate tells what is wrong with a hub's URL.
func (h Hub) Validate() error {
	_, err := newHub(h)
	return err
}

// hub is a Hub that can be asked.
type hub struct {
	base   *url.URL // without a slash at its end
	token  string
	mirror bool
	stall  time.Duration // 0: as the tuning says
}

func newHub(h Hub) (*hub, error) {
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
	return &hub{base: base, token: strings.TrimSpace(h.Token), mirror: h.Mirror, stall: h.Stall}, nil
}

func (h *hub) String() string { return h.base.String() }

// name is how users know the hub: by its host.
func (h *hub) name() string { return h.base.Host }

// page is where users see a repository.
func (h *hub) page(repo string) string { return h.String() + "/" + repo }

// at is an address below the hub, of segments that are escaped here.
func (h *hub) at(segments ...string) string {
	var b strings.Builder
	b.WriteString(h.String())
	for _, segment := range segments {
		for part := range strings.SplitSeq(segment, "/") {
			b.WriteString("/" + url.PathEscape(part))
		}
	}
	return b.String()
}

// resolve is the address of a file. A slash in the revision's name must not part segments.
func (h *hub) resolve(repo, revision, file string) string {
	return h.at(repo, "resolve") + "/" + url.PathEscape(revision) + h.tail(file)
}

func (h *hub) tail(file string) string { return strings.TrimPrefix(h.at(file), h.String()) }

// client asks the hub: over https, following redirects that keep to it, with the token for the hub itself and nobody else.
func (h *hub) client(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: &bearer{hub: h, next: transport}, CheckRedirect: outbound.CheckRedirect}
}

// bearer adds the hub's token to requests to the hub. The header isn't set where redirects would carry it along, as
// net/http does to subdomains and other ports of a host.
type bearer struct {
	hub  *hub
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (b *bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Del("Authorization")
	request.Header.Del("Referer") // a hub's address may say more than another host needs to know
	request.Header.Set("User-Agent", outbound.UserAgent)
	if b.hub.token != "" && outbound.SameOrigin(request.URL, b.hub.base) {
		request.Header.Set("Authorization", "Bearer "+b.hub.token)
	}
	return b.next.RoundTrip(request)
}

// hubs are the hubs that are known.
type hubs struct {
	all []*hub // the first is the one that repositories without a URL are fetched from
}

func newHubs(configured []Hub) (*hubs, error) {
	var all hubs
	for _, c := range configured {
		h, err := newHub(c)
		if err != nil {
			return nil, err
		}
		all.all = append(all.all, h)
	}
	if all.find(PublicHub) == nil {
		public, err := newHub(Hub{URL: PublicHub})
		if err != nil {
			return nil, err
		}
		all.all = append(all.all, public)
	}
	return &all, nil
}

// find is the hub with exactly this base address.
func (hs *hubs) find(base string) *hub {
	for _, h := range hs.all {
		if h.String() == base {
			return h
		}
	}
	return nil
}

// of is the hub of an address, and the segments of the address's path below it, as they are escaped. It is nil if no hub
// is known there.
func (hs *hubs) of(u *url.URL) (*hub, string) {
	var best *hub
	for _, h := range hs.all {
		under := u.EscapedPath() == h.base.EscapedPath() || strings.HasPrefix(u.EscapedPath(), h.base.EscapedPath()+"/")
		if under && outbound.SameOrigin(u, h.base) && (best == nil || len(h.base.Path) > len(best.base.Path)) {
			best = h
		}
	}
	if best == nil {
		return nil, ""
	}
	rest := strings.TrimPrefix(u.EscapedPath(), best.base.EscapedPath())
	if best.String() == PublicHub && best.token == "" {
		for _, h := range hs.all {
			if h.mirror {
				return h, rest
			}
		}
	}
	return best, rest
}

// names lists the hubs for users.
func (hs *hubs) names() string {
	var names []string
	for _, h := range hs.all {
		names = append(names, h.String())
	}
	return strings.Join(names, ", ")
}
