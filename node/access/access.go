// Package access decides who may use a server, and how much: it verifies tokens and slows down those that guess them, follows the
// requests in progress to end those whose token no longer allows them, and enforces limits of requests, of tokens a day and of the memory
// of request bodies.
//
// The package starts no goroutines: the owner of an [Access] calls its Recheck, Save and ShareStale periodically. All methods may be
// called from any goroutine.
package access

import (
	"crypto/sha256"
	"log/slog"
	"time"

	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/store"
)

// Options are what an Access needs of its server. All of them are required.
type Options struct {
	Log     *slog.Logger
	Store   func() *store.Store  // in use; nil before the first settings
	Usage   *record.Usage        // counts the tokens that are used
	Grace   func() time.Duration // how long a verified token stays valid while the store is unreachable
	Revoked func(id string)      // is called when a token has been revoked

	IsClustered func() bool            // other servers with the store count the limits of tokens, too
	Boot        string                 // identifies this server's start among them
	Boots       func() map[string]bool // of the servers of the cluster that run, with this one
}

// Access is the access to one server.
type Access struct {
	Tokens   *Tokens
	Running  *Running
	Quota    *Quota
	Failures *Failures
	Bodies   *Bodies
}

// New returns an Access that knows of no requests yet.
func New(o Options) *Access {
	running := &Running{store: o.Store, again: make(chan struct{}, 1), of: map[string]map[*Request]struct{}{}}
	return &Access{
		Tokens:  &Tokens{Options: o, running: running, looked: map[[sha256.Size]byte]known{}, used: map[string]time.Time{}},
		Running: running, Quota: newQuota(o), Failures: new(Failures), Bodies: new(Bodies),
	}
}
