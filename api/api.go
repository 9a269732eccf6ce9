// Package api has the HTTP endpoints of a node: one table of routes, and one [run] for the generated text of all dialects. It
// knows net/http, but not the server that it runs in.
//
// A request's body is read once, up to a limit, and scanned once. An endpoint returns its error, and [call.fail] writes it in the
// client's dialect: with a status, or as an event if a stream has begun.
package api

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
)

// DefaultMaxBody is how many bytes a request's body may have, decoded, unless a Config says otherwise.
const DefaultMaxBody = 64 << 20

// Config is what an API is made of.
type Config struct {
	// Node returns the node. It may wait until there is one, as long as the context isn't done.
	Node    func(context.Context) (*node.Node, error)
	MaxBody int64 // of a request, in bytes, decoded; 0: DefaultMaxBody
	// KeepAlive is how long a stream may be silent before a comment or a ping is sent; 0: 15 seconds.
	KeepAlive time.Duration
	Log       *slog.Logger
	// Logs has what GET /api/v1/logs lists; nil: nothing.
	Logs *logs.Log
	// Describe returns the configuration, for administrators; nil: they aren't told.
	Describe func() resource.Configuration
	// Version is the server's; empty: unknown.
	Version string
	// Exiting is closed when the server begins to shut down. Streams of events that would not end by themselves then end; nil:
	// they go on.
	Exiting <-chan struct{}

	// Replaced is closed when a newer configuration takes the place of this one. Connections that outlive their requests then end; nil:
	// they go on.
	Replaced <-chan struct{}

	// Families are the API families that the site serves; none: all of them.
	Families []Family

	// Root answers requests for the path /; nil: there is nothing.
	Root interface {
		http.Handler
		Has(*http.Request) bool // reports whether a request is one for that path which is answered
	}

	// CORS are the origins whose web pages may use the API from a browser, such as https://app.example; "*": all.
	CORS []string
	// CORSOf returns the origins for a request's site, in place of CORS; nil: CORS applies.
	CORSOf func(*http.Request) []string
	// Hosts are further names and addresses of this machine, in lower case.
	Hosts []string
	// ServesHost reports whether a request's host is a name that the configuration gives this site; nil: it gives none.
	ServesHost func(*http.Request) bool
	// RootCertificate returns the certificate of the server's own authority, in PEM; nil, or an error: there is none.
	RootCertificate func() ([]byte, error)
	// Underway is called when a response begins that outlives its request, and the function that it returns when that has ended; nil:
	// neither is.
	Underway func() (end func())
	// Ended is called with the summary of each request when it has ended, before its handler returns; nil: nothing is. ctx is the
	// request's. It may keep the summary.
	Ended func(ctx context.Context, s *node.Summary)

	headerAfter  time.Duration // see headerAfter
	bodyPatience time.Duration // see bodyPatience
	maxGathered  int64         // see maxGathered
	maxBrought   int64         // see maxBrought
}

// API serves the endpoints.
type API struct{ *site }

// site is what the endpoints of a site have in common.
type site struct {
	Config
	encoded    encodedModels // of the native API
	encodedV0  encodedModels
	loadErrors quiet
}

// New returns an API.
func New(c Config) *API { return &API{newSite(c)} }

// newSite returns a site, whose configuration is completed.
func newSite(c Config) *site {
	if c.MaxBody == 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = defaultKeepAlive
	}
	if c.Logs == nil {
		c.Logs = logs.New()
	}
	if c.headerAfter == 0 {
		c.headerAfter = headerAfter
	}
	if c.bodyPatience == 0 {
		c.bodyPatience = bodyPatience
	}
	if c.maxBrought == 0 {
		c.maxBrought = maxBrought
	}
	if c.maxGathered == 0 {
		c.maxGathered = maxGathered
	}
	return &site{Config: c}
}

// call is one request that is being answered.
type call struct {
	site      *site
	w         http.ResponseWriter
	r         *http.Request
	node      *node.Node
	id        string // of the request
	arrived   time.Time
	dialect   *dialect
	param     string // the part of the path that the route leaves open
	begun     bool   // the answer's header has been sent
	stream    *stream
	incoming  timely          // the request's body, while it is read
	held      *heldBuffer     // all of it; nil before
	read      bool            // the body has been read to its end
	claim     node.BodyClaim  // the memory that is counted for the body
	who       *node.Identity  // nil: anybody, on a site without authentication
	running   *node.Running   // nil: the request has no token, or that isn't known yet
	followed  []*node.Running // of each scope that the request needs
	admitted  func()          // gives the request's place among those of its token back; nil: it has none
	run       *node.Run       // that the call makes the answer of, without a request; nil: it answers one
	isMessage bool            // the request came as a message on the connection of another
	// answerMessage answers such a request; a field, since endpoints can't refer to what finds endpoints.
	answerMessage func(http.ResponseWriter, *http.Request)
	ends          []func() // called when the request ends

	ledger    ledger
	underway  *node.Underway          // nil: it isn't known yet which model the request asks, or it asks none
	inspected *node.Inspection        // nil: nothing is kept of the request
	cancel    context.CancelCauseFunc // ends the request, whose context it is
	writing   writing
}

// ServeHTTP answers a request, also one for the page. A path that isn't the API's is answered with 404.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.Root != nil && a.Root.Has(r) {
		a.Root.ServeHTTP(w, r)
		return
	}
	a.answer(w, r, false)
}

// answer answers a request, which may have come as a message on a WebSocket.
func (a *API) answer(w http.ResponseWriter, r *http.Request, isMessage bool) {
	r = meant(r)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	id := requestID(r)
	c := &call{
		site: a.site, w: w, r: r.WithContext(logs.WithRequest(ctx, id)), id: id, arrived: time.Now(), dialect: dialectOf(r), cancel: cancel,
		isMessage: isMessage, answerMessage: func(w http.ResponseWriter, r *http.Request) { a.answer(w, r, true) },
	}
	defer c.endWriting()
	c.tellID()
	c.beginTrace()
	defer c.end()
	defer c.recover()
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

// end gives back what the call has taken, and tells how it went.
func (c *call) end() {
	defer c.settle()
	for _, end := range c.ends {
		end()
	}
	if c.admitted != nil {
		c.admitted()
	}
	if c.held != nil {
		c.held.Release()
	}
	c.claim.Release()
}

func (c *call) serve() error {
	if c.share() {
		return nil
	}
	found, err := c.route()
	if err != nil {
		return err
	}
	if found.path == healthPath && c.site.runningNode(c.r.Context()) == nil {
		c.starting()
		return nil
	}
	if c.node, err = c.site.Node(c.r.Context()); err != nil {
		return err
	}
	if refused := c.refuseLoop(); refused != nil {
		return refused
	}
	if err := c.identify(found.scope); err != nil {
		return err
	}
	if refused := c.refuseForeign(); refused != nil {
		return refused
	}
	if err := c.checkQuery(found); err != nil {
		return err
	}
	c.follow(c.who, found.scope)
	if found.scope == node.ScopeInference && found.method == http.MethodPost {
		c.inspect()
	}
	return found.endpoint(c)
}

// tellID sets the headers with the request's id.
func (c *call) tellID() {
	c.w.Header().Set("X-Request-Id", c.id)
	if c.dialect == anthropicDialect {
		c.w.Header().Set("Request-Id", c.id)
	}
}

// recover answers a request that made the server panic, so that no other is affected.
func (c *call) recover() {
	switch fault := recover(); fault {
	case nil:
	case http.ErrAbortHandler:
		panic(fault) // net/http's own way to cut a connection
	default:
		e := c.faulty(fault)
		if c.begun {
			panic(http.ErrAbortHandler) // a client can't mistake a cut connection for a complete answer
		}
		c.fail(e)
	}
}

// faulty logs what made the server panic. It has to be called on the stack of the panic.
func (c *call) faulty(fault any) *translate.Error {
	p := asPanicked(fault)
	c.site.Log.Error("a request made the server panic", "request", c.id, "path", c.r.URL.Path, "fault", p.fault, "stack", string(p.stack))
	e := &translate.Error{Kind: translate.KindInternal, Message: "The server made a mistake. Its log says more, under this request's id: " + c.id}
	c.ledger.failed(e)
	return e
}

// requestID is the id that the request was given before, or the one that the client sent, if it is fit to be logged, and otherwise a
// new one.
func requestID(r *http.Request) string {
	if id := logs.RequestOf(r.Context()); id != "" {
		return id
	}
	id := r.Header.Get("X-Request-Id")
	fit := len(id) > 0 && len(id) <= 128 && strings.IndexFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
	if fit {
		return id
	}
	return newID("req_")
}

// newID returns a new id. It can't be guessed in practice, but nothing depends on that: what it names is found only by its owner.
func newID(prefix string) string {
	id := append(make([]byte, 0, 48), prefix...)
	for range 2 { // 128 bits
		for n, i := rand.Uint64(), 0; i < 13; i++ { //nolint:gosec // of the runtime's generator, which is quicker
			id = append(id, "abcdefghijklmnopqrstuvwxyz234567"[n&31])
			n >>= 5
		}
	}
	return string(id)
}
