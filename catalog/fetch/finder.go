package fetch

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

// finder finds models at the configured hubs, and chooses what this machine can run.
type finder struct {
	limits    limits
	transport *http.Transport
	known     atomic.Pointer[hubs]
	searching chan struct{} // a semaphore of searches

	memory  func() int64            // see Options
	formats func() []catalog.Format // see Options
	prefers catalog.Format          // see Options
}

// limits bound requests to hubs; tests change them.
type limits struct {
	// stall is how long a server may send nothing before the connection is closed.
	stall time.Duration
	// firstRetry is the delay of the first retry, which doubles with each; it must be one second at most. tries and patience bound the
	// retries while a client waits.
	firstRetry time.Duration
	tries      int
	patience   time.Duration
	// search is how long each step of a search may take: the question to all hubs, and the look at what they found.
	search time.Duration
}

var defaultLimits = limits{
	stall:      60 * time.Second,
	firstRetry: 500 * time.Millisecond,
	tries:      3,
	patience:   5 * time.Second,
	search:     15 * time.Second,
}

func newFinder(configured []Hub, l limits) (*finder, error) {
	f := &finder{limits: l, transport: outbound.NewTransport(), searching: make(chan struct{}, searches)}
	return f, f.SetHubs(configured)
}

// SetHubs replaces the hubs. Running downloads are not affected.
func (s *finder) SetHubs(configured []Hub) error {
	known, err := newHubs(configured)
	if err != nil {
		return err
	}
	s.known.Store(known)
	return nil
}

// hubOf returns the hub with a base URL.
func (s *finder) hubOf(base string) (*hub, error) {
	if h := s.known.Load().find(base); h != nil {
		return h, nil
	}
	return nil, errorf(Invalid, "The hub %s that this model comes from is configured no more. Add it with `hub %s`, and resume the download.",
		base, base)
}

func (s *finder) api(h *hub) *api {
	return &api{hub: h, client: h.client(s.transport), limits: s.limits}
}

// list returns the files of a repository, in a revision or, if that is empty, in the default one.
func (s *finder) list(ctx context.Context, h *hub, repo, revision string) (listing, error) {
	return s.api(h).list(ctx, repo, revision)
}

// machine returns what is known of this machine now, except the files that it has.
func (s *finder) machine() machine {
	m := machine{prefers: s.prefers}
	if s.formats != nil {
		m.formats = s.formats()
	}
	if s.memory != nil {
		m.memory = s.memory()
	}
	return m
}
