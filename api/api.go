// Package api is the HTTP endpoints over a node: one table of routes, one pipeline for each dialect. It knows net/http and
// nothing of the server it runs in.
//
// A request's body is read once, bounded, and scanned once. Whatever goes wrong before the first byte of an answer is
// returned by the endpoint, and told to the client in its own dialect by one place: [call.fail]. After the first byte it
// is an event of the stream.
package api

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
)

// DefaultMaxBody is how many bytes a request's body may have, decoded, unless a Config says otherwise.
const DefaultMaxBody = 64 << 20

// Config is what an API stands on.
type Config struct {
	// Node gives the node. It may wait until there is one, but not beyond the context.
	Node    func(context.Context) (*node.Node, error)
	MaxBody int64 // of a request, in bytes, decoded; 0: DefaultMaxBody
	// KeepAlive is after how long a silence a stream has a sign of life; 0: 15 seconds.
	KeepAlive time.Duration
	Log       *slog.Logger
	// Exiting is closed when the server begins to shut down: streams of events without an end of their own then end. nil: they
	// go on for as long as they may.
	Exiting <-chan struct{}

	// Families are the API families that the site serves; none: all of them.
	Families []Family

	// CORS are the origins whose web pages may use the API from a browser, such as https://app.example; "*": all.
	CORS []string
	// CORSOf gives the origins of a request's site, where CORS doesn't; nil: CORS does.
	CORSOf func(*http.Request) []string
	// Hosts are names and addresses of this machine, beside its own, in lower case.
	Hosts []string
	// ServesHost tells whether a request's host is a name that the configuration gives this site; nil: it gives none.
	ServesHost func(*http.Request) bool
	// RootCertificate is that of the server's own certificate authority, in PEM; nil, or an error: there is none.
	RootCertificate func() ([]byte, error)

	headerAfter  time.Duration // see headerAfter
	bodyPatience time.Duration // see bodyPatience
	maxGathered  int64         // see maxGathered
}

// API serves the endpoints.
type API struct {
	Config
	encoded    encodedModels
	loadErrors quiet
}

// New makes an API.
func New(c Config) *API {
	if c.MaxBody == 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = defaultKeepAlive
	}
	if c.headerAfter == 0 {
		c.headerAfter = headerAfter
	}
	if c.bodyPatience == 0 {
		c.bodyPatience = bodyPatience
	}
	if c.maxGathered == 0 {
		c.maxGathered = maxGathered
	}
	return &API{Config: c}
}

// call is one request on its way.
type call struct {
	api     *API
	w       http.ResponseWriter
	r       *http.Request
	node    *node.Node
	id      string // of the request
	arrived time.Time
	dialect translate.Dialect
	param   string // what the route's path leaves open
	begun   bool   // the answer's header has been sent
	stream  *stream
	held    *heldBuffer    // the request's body; nil before it was read
	read    bool           // it was read to its end
	claim   node.BodyClaim // the memory that is counted for it
	who     *node.Identity // nil: anybody, on a site without authentication
	running *node.Running  // nil: without a token, or before that is known
	ends    []func()       // what is to be done when the request has ended

	cancel   context.CancelCauseFunc // ends the request, whose context it is
	writing  writing
	gathered atomic.Int64 // bytes that are kept of answers
	answered atomic.Bool  // an engine has begun to answer
}

// ServeHTTP answers a request. One that the API doesn't own is told that there is nothing there.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	c := &call{api: a, w: w, r: r.WithContext(ctx), id: requestID(r), arrived: time.Now(), dialect: dialectOf(r), cancel: cancel}
	defer c.endWriting()
	c.tellID()
	defer func() {
		for _, end := range c.ends {
			end()
		}
		if c.held != nil {
			c.held.Release()
		}
		c.claim.Release()
	}()
	defer c.recover()
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

func (c *call) serve() error {
	if c.share() {
		return nil
	}
	found, err := c.route()
	if err != nil {
		return err
	}
	if c.node, err = c.api.Node(c.r.Context()); err != nil {
		return err
	}
	if err := c.identify(found.scope); err != nil {
		return err
	}
	if refused := c.refuseForeign(); refused != nil {
		return refused
	}
	c.follow(found.scope)
	return found.endpoint(c)
}

// tellID tells the client the request's id, under the names that it may know.
func (c *call) tellID() {
	c.w.Header().Set("X-Request-Id", c.id)
	if c.dialect == anthropicDialect {
		c.w.Header().Set("Request-Id", c.id)
	}
}

// recover keeps a fault of ours from ending more than one request.
func (c *call) recover() {
	switch fault := recover(); fault {
	case nil:
	case http.ErrAbortHandler:
		panic(fault) // net/http's own way to cut a connection
	default:
		p := asPanicked(fault)
		c.api.Log.Error("a request made the server panic", "request", c.id, "path", c.r.URL.Path, "fault", p.fault, "stack", string(p.stack))
		if c.begun {
			panic(http.ErrAbortHandler) // a cut connection is the only thing left that no client takes for an answer
		}
		c.fail(&translate.Error{Kind: translate.KindInternal, Message: "The server made a mistake. Its log says more, under this request's id: " + c.id})
	}
}

// requestID is the client's own, where it sends one that is fit to be logged, else a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	fit := len(id) > 0 && len(id) <= 128 && strings.IndexFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
	if fit {
		return id
	}
	return "req_" + strings.ToLower(rand.Text())
}
