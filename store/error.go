package store

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrClosed is returned by every method after Close.
var ErrClosed = errors.New("the store is closed")

// ErrFull is wrapped by errors of writes that failed because the disk is full.
var ErrFull = errors.New("The disk is full: make room, or bound the age and number of the conversations that are kept")

// ErrUnavailable is wrapped by errors of a database that can't be used: it can't be reached, refuses what is asked, such as a standby that
// refuses writes, or is damaged.
var ErrUnavailable = errors.New("the database is unavailable")

// unavailable adds ErrUnavailable to an error without changing its text.
type unavailable struct{ error }

func (e unavailable) Unwrap() []error { return []error{e.error, ErrUnavailable} }

// ErrBusy is wrapped by errors of operations that timed out, because another program kept the database locked or because too
// many writes were waiting.
var ErrBusy = errors.New("the store is busy")

// errNotGrown wraps ErrFull where a quota or a limit of this process may be exhausted.
var errNotGrown = fmt.Errorf("Its file can't be written: the user's quota or the process's limit of a file's size (ulimit -f, LimitFSIZE) "+
	"may be reached, or the disk may be failing, of which the system's log says more. %w", ErrFull)

// NotFound says that the owner has no turn with the ID. It doesn't tell whether the turn was never stored, was deleted or
// belongs to another owner.
type NotFound struct{ ID string }

func (e *NotFound) Error() string { return fmt.Sprintf("no stored response has the id %q", e.ID) }

// Exists says that another turn has the ID.
type Exists struct{ ID string }

func (e *Exists) Error() string {
	return fmt.Sprintf("another response with the id %q is stored already", e.ID)
}

// TooDeep says that the conversation has MaxDepth turns.
type TooDeep struct{ Parent string }

func (e *TooDeep) Error() string {
	return fmt.Sprintf("the conversation that ends with %q has %d turns, and can't have more: begin a new one", e.Parent, MaxDepth)
}

// Invalid says that a turn can't be stored, through a fault of the caller.
type Invalid struct{ ID, Reason string }

func (e *Invalid) Error() string { return fmt.Sprintf("storing response %q: %s", e.ID, e.Reason) }

// Newer says that the schema was changed by a newer program.
type Newer struct {
	Store          string // path, or address without password
	Version, Known int    // version of the schema, and the highest known
}

func (e *Newer) Error() string {
	return fmt.Sprintf("the store %s has schema version %d, and this lmcaddy knows versions up to %d: a newer lmcaddy has written it. "+
		"Run that one or a newer one, or give this one another store", e.Store, e.Version, e.Known)
}

// already says that exactly this turn is stored. It isn't returned from the package.
type already struct {
	family  string
	created int64
}

func (*already) Error() string { return "the response is stored already" }

// isRefusal reports whether err is about the request and not about the database.
func isRefusal(err error) bool {
	switch err.(type) { //nolint:errorlint // never wrapped within the package
	case *NotFound, *NoConversation, *Exists, *TooDeep, *Invalid, *Newer, *already:
		return true
	}
	return false
}

// possible reports whether a database can store s as an ID. IDs come from clients, and PostgreSQL rejects some of them with an error.
func possible(s string) bool { return s != "" && utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
