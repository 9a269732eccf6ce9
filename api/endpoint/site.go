// Package endpoint has what all endpoints need of a request, in every dialect: a [Call]. Its body is read once, up to a limit, and scanned
// once. An endpoint returns its error, and [Call.Fail] writes it in the client's dialect: with a status, or as an event of a stream.
package endpoint

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/record"
)

// DefaultMaxBody is how many bytes a request's body may have, decoded, unless a Config says otherwise.
const DefaultMaxBody = 64 << 20

// Config is what an API is made of.
type Config struct {
	// Node returns the node. It may wait until there is one, as long as the context isn't done.
	Node      func(context.Context) (*node.Node, error)
	MaxBody   int64         // of a request, in bytes, decoded; 0: DefaultMaxBody
	KeepAlive time.Duration // how long a stream may be silent before a comment or a ping is sent; 0: 15 seconds
	Log       *slog.Logger
	Logs      *logs.Log // what GET /api/v1/logs lists; nil: nothing
	// Describe returns the configuration, for administrators; nil: they aren't told.
	Describe func() resource.Configuration
	Version  string // the server's; empty: unknown
	// Exiting is closed when the server begins to shut down, which ends endless streams of events; nil: they go on.
	Exiting <-chan struct{}

	// Replaced is closed when a newer configuration takes over, which ends connections that outlive their requests; nil: they go on.
	Replaced <-chan struct{}

	Families []Family // the API families that the site serves; none: all of them

	// Root answers requests for the path /; nil: there is nothing.
	Root interface {
		http.Handler
		Has(*http.Request) bool // reports whether a request is one for that path which is answered
	}

	// CORS are the origins whose web pages may use the API from a browser, such as https://app.example; "*": all.
	CORS   []string
	CORSOf func(*http.Request) []string // returns the origins for a request's site, in place of CORS; nil: CORS applies
	Hosts  []string                     // further names and addresses of this machine, in lower case
	// ServesHost reports whether a request's host is a name that the configuration gives this site; nil: it gives none.
	ServesHost func(*http.Request) bool
	// RootCertificate returns the certificate of the server's own authority, in PEM; nil, or an error: there is none.
	RootCertificate func() ([]byte, error)
	// Underway is called when a response begins that outlives its request, and what it returns at its end; nil: neither is.
	Underway func() (end func())
	// Ended is called with the summary of each request, which it may keep, and its context, before its handler returns; nil: nothing is.
	Ended func(ctx context.Context, s *record.Summary)

	HeaderAfter  time.Duration // see headerAfter
	BodyPatience time.Duration // see bodyPatience
	MaxGathered  int64         // see maxGathered
	MaxBrought   int64         // see maxBrought
}

// Site is what the endpoints of a site have in common.
type Site struct {
	Config
	Encoded    encodedModels // of the native API
	EncodedV0  encodedModels
	loadErrors quiet
}

// NewSite returns a site, whose configuration is completed.
func NewSite(c Config) *Site {
	if c.Logs == nil {
		c.Logs = logs.New()
	}
	c.MaxBody, c.KeepAlive = cmp.Or(c.MaxBody, DefaultMaxBody), cmp.Or(c.KeepAlive, defaultKeepAlive)
	c.HeaderAfter, c.BodyPatience = cmp.Or(c.HeaderAfter, headerAfter), cmp.Or(c.BodyPatience, bodyPatience)
	c.MaxBrought, c.MaxGathered = cmp.Or(c.MaxBrought, maxBrought), cmp.Or(c.MaxGathered, maxGathered)
	return &Site{Config: c}
}

// maxBrought bounds how much a request brings in from the store, in bytes: a few bytes of references can stand for a lot.
const maxBrought = 256 << 20

// maxGathered bounds how many bytes of one request's answers, with the results of tools, are gathered until they are whole.
const maxGathered = 64 << 20

// RunningNode returns the node, or nil if there is none yet.
func (a *Site) RunningNode(ctx context.Context) *node.Node {
	if a.Node == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cancel() // it isn't waited for
	n, err := a.Node(ctx)
	if err != nil {
		return nil
	}
	return n
}

// The types of answers. Without a charset, Python's requests reads streams as Latin-1, and cuts lines at U+0085.
const (
	TypeJSON   = "application/json; charset=utf-8"
	TypeLines  = "application/x-ndjson; charset=utf-8"
	TypeEvents = "text/event-stream; charset=utf-8"
	TypeText   = "text/plain; charset=utf-8"
)
