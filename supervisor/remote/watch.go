package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// pace says how often a remote is asked, and when it is given up.
type pace struct {
	every   time.Duration // between two checks whether it is alive
	timeout time.Duration // of a check
	list    time.Duration // how long the list of its models may take
	pause   time.Duration // between two lists that requests lead to
	misses  int32         // how many checks in a row may go unanswered until it is away
}

// A node that is busy may answer late, and one behind a broken network never.
var (
	usualPace = pace{every: 10 * time.Second, timeout: 5 * time.Second, list: 20 * time.Second, pause: time.Second, misses: 1}
	peerPace  = pace{every: 2 * time.Second, timeout: 3 * time.Second, list: 3 * time.Second, misses: 2}
)

const (
	retryEvery = time.Second      // between checks of a remote that can't be reached
	listEvery  = 30 * time.Second // between lists of its models
)

// State is what is known of a remote.
type State struct {
	Found        // as last listed; zero: it could never be reached
	Away  string // why it can't be reached; empty: it can
	Since time.Time
}

// Watch watches a remote until it is closed.
type Watch struct {
	*Server
	pace

	changed func(State)
	wake    chan struct{}
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	reporting sync.Mutex // held while changed is called, so that the newest state is reported last

	mu    sync.Mutex
	state State
	asked bool

	missed atomic.Int32 // checks in a row without an answer
}

// NewWatch begins to watch a remote. changed is called with each state that differs from the last, one after the other, and with the first.
func NewWatch(s *Server, changed func(State)) *Watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watch{Server: s, pace: usualPace, changed: changed, wake: make(chan struct{}, 1), cancel: cancel}
	if s.config.Peer != "" {
		w.pace = peerPace
	}
	w.ended.Go(func() { w.loop(ctx) })
	return w
}

// Close ends the watch. Requests in progress go on.
func (w *Watch) Close() {
	w.cancel()
	w.ended.Wait()
	w.Server.Close()
}

// Recheck asks the remote for its models soon.
func (w *Watch) Recheck() {
	select {
	case w.wake <- struct{}{}:
	default: // already requested
	}
}

// Refresh asks for the models now.
func (w *Watch) Refresh(ctx context.Context) { w.ask(ctx, true) }

// Alive asks whether the server answers, since a request to it has failed. If it doesn't, it is away, and is asked again at once
// and then every second. One that is away already isn't asked.
func (w *Watch) Alive(ctx context.Context) error {
	w.reporting.Lock() // what is known is also reported then
	state, _ := w.State()
	w.reporting.Unlock()
	if state.Away != "" {
		return errSevered
	}
	err := w.Server.Alive(ctx)
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	if w.report(nil, err) {
		w.Recheck()
	}
	return err
}

// State returns what is known now. It is false before the first answer or failure.
func (w *Watch) State() (State, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.asked
}

func (w *Watch) loop(ctx context.Context) {
	var listed time.Time
	isDue := true // the list
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			isDue = true
			state, _ := w.State()
			if wait := w.pause - time.Since(listed); wait > 0 && state.Away == "" {
				timer.Reset(wait)
				continue
			}
		case <-timer.C:
		}
		state, _ := w.State()
		isDue = isDue || state.Away != "" || time.Since(listed) >= listEvery
		if isDue {
			listed = time.Now()
		}
		isDue = !w.ask(ctx, isDue) && isDue
		if state, _ = w.State(); state.Away != "" || w.missed.Load() > 0 {
			timer.Reset(retryEvery)
		} else {
			timer.Reset(w.every)
		}
	}
}

// ask asks whether the remote is alive, or for its models. It is false if it hasn't answered, which doesn't mean anything yet.
func (w *Watch) ask(ctx context.Context, isList bool) bool {
	timeout := w.timeout
	if isList {
		timeout = w.list
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var found *Found
	var err error
	if state, _ := w.State(); !isList || state.Away != "" && state.Kind != "" {
		err = w.Server.Alive(asking) // one that lists its models may still answer no request
	}
	if isList && err == nil {
		var all Found
		all, err = w.Discover(asking)
		found = &all
	}
	isSilent := errors.Is(err, context.DeadlineExceeded)
	if ctx.Err() != nil || isSilent && w.missed.Add(1) < w.misses {
		return false
	}
	w.missed.Store(0)
	w.report(found, err)
	if isSilent && w.config.Peer != "" {
		w.sever()
	}
	return true
}

// report sets the state after an answer, or the error of a remote that doesn't answer, and reports whether it wasn't away before.
// found is nil if it wasn't asked for its models.
func (w *Watch) report(found *Found, err error) (wasThere bool) {
	w.reporting.Lock()
	defer w.reporting.Unlock()
	w.mu.Lock()
	before := w.state
	now := before
	now.Away = ""
	if err != nil {
		now.Away = err.Error()
	} else if found != nil {
		now.Found = *found
	}
	isNew := !w.asked || !reflect.DeepEqual(now.Found, before.Found) || now.Away != before.Away
	if !w.asked || (now.Away == "") != (before.Away == "") {
		now.Since = time.Now()
	}
	w.state, w.asked = now, true
	w.mu.Unlock()
	if isNew {
		w.changed(now)
	}
	if err != nil {
		w.Server.Close() // what is left of the connections leads nowhere
	}
	return before.Away == ""
}

// reachError says why a remote can't be reached. Its text has no address: it is shown to clients.
type reachError struct {
	told  string
	cause error
}

func (e *reachError) Error() string { return e.told }

// Unwrap returns the error of the network.
func (e *reachError) Unwrap() error { return e.cause }

// withoutURL returns an error of the network in words for people, without an address.
func (s *Server) withoutURL(err error) error {
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	if err == nil {
		return nil
	}
	if told := explained(err); told != "" {
		return &reachError{told, err}
	}
	return err
}

// explained says what an error of the network means; empty: it says so itself.
func explained(err error) string {
	var (
		otherName x509.HostnameError
		unknown   x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		noTLS     tls.RecordHeaderError
		dns       *net.DNSError
		op        *net.OpError
	)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &noTLS):
		return "it doesn't speak TLS: its URL must begin with http://, or have another port"
	case errors.As(err, &otherName):
		return "its certificate is for another name than the one in its URL: use that name, or the option tls_pin"
	case errors.As(err, &unknown):
		return "its certificate is from an authority that isn't known here: give the option tls_ca or tls_pin"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired, or isn't valid yet"
	case errors.As(err, &invalid):
		return "its certificate isn't valid"
	case errors.As(err, &dns):
		return "its host name can't be resolved"
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return "connecting to it takes too long"
	case errors.Is(err, context.DeadlineExceeded):
		return "it takes too long to answer"
	case errors.As(err, &op):
		err = op.Err
		for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
			err = next
		}
		return err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends the connection before its answer is complete"
	case strings.Contains(err.Error(), "response headers exceeded"):
		return "the header of its answer is too long"
	case strings.Contains(err.Error(), "malformed HTTP"):
		return "it doesn't speak HTTP: the address may be that of another program"
	default:
		return ""
	}
}

type statusError struct {
	status     int
	wantsHTTPS bool // the answer says something of HTTPS
}

func (e *statusError) Error() string {
	switch {
	case e.status == http.StatusUnauthorized, e.status == http.StatusForbidden:
		return fmt.Sprintf("it refuses the key (status %d): correct the option key", e.status)
	case e.status == http.StatusBadRequest && e.wantsHTTPS:
		return "it expects TLS: its URL must begin with https://"
	case e.status >= 300 && e.status < 400:
		return fmt.Sprintf("it redirects to another address (status %d): give that one as its URL", e.status)
	default:
		return fmt.Sprintf("it answers with status %d", e.status)
	}
}

// errNotJSON is the error of an answer that is of no server of models.
var errNotJSON = errors.New("its answer isn't JSON: the address may be that of another program")

// formError is the error of an answer in JSON with a field that isn't what it is in the API.
type formError struct{ field, is string }

func (e *formError) Error() string {
	return "its answer has an unexpected form: " + e.field + " is of the type " + e.is
}

// Is reports that it is an answer of another program, too.
func (e *formError) Is(target error) bool { return target == errNotJSON }
