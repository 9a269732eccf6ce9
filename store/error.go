package store

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrClosed is what every method gives after Close.
var ErrClosed = errors.New("the store is closed")

// ErrFull is in the errors of what couldn't be written because the disk is full.
var ErrFull = errors.New("The disk is full: make room, or bound the age and number of the conversations that are kept")

// ErrAway is in the errors of a database that can't be reached at the moment.
var ErrAway = errors.New("the database is away")

// away adds ErrAway to an error without changing what it says.
type away struct{ error }

func (e away) Unwrap() []error { return []error{e.error, ErrAway} }

// ErrBusy is in the errors of what couldn't be written or read in time, since another program kept the database locked or since
// too much waited before it.
var ErrBusy = errors.New("the store is busy")

// errNotGrown wraps ErrFull where a quota or a limit of this process may be what is full.
var errNotGrown = fmt.Errorf("Its file can't be written: the user's quota or the process's limit of a file's size (ulimit -f, LimitFSIZE) "+
	"may be reached, or the disk may be failing, of which the system's log says more. %w", ErrFull)

// NotFound says that an owner has no turn of that id: it was never stored, was deleted, or is another's. Which of these it
// is, isn't told.
type NotFound struct{ ID string }

func (e *NotFound) Error() string { return fmt.Sprintf("no stored response has the id %q", e.ID) }

// Exists says that another turn has the id already.
type Exists struct{ ID string }

func (e *Exists) Error() string {
	return fmt.Sprintf("another response with the id %q is stored already", e.ID)
}

// TooDeep says that a turn would be one more than MaxDepth.
type TooDeep struct{ Parent string }

func (e *TooDeep) Error() string {
	return fmt.Sprintf("the conversation that ends with %q has %d turns, and can't have more: begin a new one", e.Parent, MaxDepth)
}

// Invalid says that a turn can't be stored as it is; it is the caller's mistake.
type Invalid struct{ ID, Reason string }

func (e *Invalid) Error() string { return fmt.Sprintf("storing response %q: %s", e.ID, e.Reason) }

// Newer says that a newer program has changed the schema.
type Newer struct {
	Store          string // its path, or its address without a password
	Version, Known int    // the schema's, and the highest that this program knows
}

func (e *Newer) Error() string {
	return fmt.Sprintf("the store %s has schema version %d, and this lmcaddy knows versions up to %d: a newer lmcaddy has written it. "+
		"Run that one or a newer one, or give this one another store", e.Store, e.Version, e.Known)
}

// already says that the very turn that is being put is stored. It never leaves the package.
type already struct {
	family  string
	created int64
}

func (*already) Error() string { return "the response is stored already" }

// ours is whether err says something about the request, and nothing about the database.
func ours(err error) bool {
	switch err.(type) { //nolint:errorlint // they are never wrapped inside the package
	case *NotFound, *Exists, *TooDeep, *Invalid, *Newer, *already:
		return true
	}
	return false
}

// possible is whether a database could hold s as an id at all. Ids come from clients, and PostgreSQL's answer to some is an
// error of its own.
func possible(s string) bool { return s != "" && utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
