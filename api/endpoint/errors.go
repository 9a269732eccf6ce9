package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/filename"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate"
)

// Fail answers with an error in the client's dialect: with a status if nothing has been sent, otherwise with an event of the stream.
func (c *Call) Fail(err error) {
	ctx := c.Request.Context()
	if ended := access.Ended(ctx); ended != nil {
		err = ended // the reason of whatever failed
	} else if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		c.Ledger.Summary.Outcome = record.OutcomeCancelled
		return // the client has disconnected
	}
	e := c.Error(err)
	c.Ledger.Failed(e)
	if c.Begun && c.Stream != nil {
		c.Site.Log.Warn("a stream failed", "request", c.ID, "error", e)
		event := c.Dialect.Errors.AppendError(nil, e, c.ID) // which the official clients raise
		if more := c.Stream.AtFault; len(more) > 0 {
			event = append(append(append(event[:len(event)-1], ','), more...), '}')
		}
		c.Stream.Send(c.Dialect.Stream.AppendFault(nil, event))
		return
	}
	if !c.read && c.Request.ContentLength != 0 { // the server waits for the end of the body before it reuses the connection
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(c.Site.BodyPatience / unreadShare))
	}
	e.Header(c.Writer.Header())
	c.WriteJSON(c.Dialect.Errors.Status(e), c.Dialect.Errors.AppendError(nil, e, c.ID))
}

// MaxMessage and MaxParam bound what is said of an error, in bytes: names in it may be as long as a body.
const (
	MaxMessage = 8000
	MaxParam   = 200
)

// Error returns what clients see of any error: in bounds, and without control characters and those that change the direction of text.
func (c *Call) Error(err error) *translate.Error {
	e := translated(c, err)
	message, param := Presentable(e.Message, MaxMessage), Presentable(e.Param, MaxParam)
	if message == e.Message && param == e.Param {
		return e
	}
	clean := *e
	clean.Message, clean.Param = message, param
	return &clean
}

// Presentable is a text without the middle of what is too long. The end of a message says what to do next.
func Presentable(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most/2], "") + " … " + strings.ToValidUTF8(text[len(text)-most/2:], "")
	}
	return strings.Map(func(r rune) rune {
		if filename.IsInvisible(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r
	}, text)
}

// translated is the only place where errors of other packages become those of this one.
func translated(c *Call, err error) *translate.Error {
	var (
		known   *translate.Error
		ended   *access.EndedError
		limit   *access.LimitError
		busy    *access.BusyError
		missing *catalog.NotFoundError
		kept    *catalog.RemoveError
		broken  *node.BrokenModelError
		refused schedule.Error
		fetched *hub.Error
		unknown *store.NotFound
		none    *store.NoConversation
		tooDeep *store.TooDeep
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &ended) && ended.Narrowed:
		return &translate.Error{Kind: translate.KindForbidden, Message: ended.Message}
	case errors.As(err, &ended):
		return Unauthorized(ended.Message)
	case errors.As(err, &limit):
		return &translate.Error{Kind: translate.KindRateLimited, Message: limit.Message, RetryAfter: limit.RetryAfter}
	case errors.As(err, &busy):
		return &translate.Error{Kind: translate.KindUnavailable, Code: "server_busy", Message: busy.Error(), RetryAfter: busy.RetryAfter}
	case errors.As(err, &missing) && c.Dialect.UnknownModel != nil:
		return c.Dialect.UnknownModel(missing)
	case errors.As(err, &missing):
		return &translate.Error{Kind: translate.KindModelNotFound, Param: "model", Message: missing.Error()}
	case errors.As(err, &kept):
		return translate.NewError(translate.KindForbidden, "not_removable", "model", c.Node.HidePaths(kept.Error()))
	case errors.As(err, &broken):
		return &translate.Error{Kind: translate.KindUnavailable, Param: "model", Message: c.Node.HidePaths(broken.Error())}
	case errors.As(err, &refused):
		return asRefused(c, refused, err)
	case errors.As(err, &fetched):
		return FetchError(c, fetched)
	case errors.As(err, &unknown):
		message := "There is no stored response " + unknown.ID + ": it was never stored, or has been deleted."
		return &translate.Error{Kind: translate.KindResponseNotFound, Message: message}
	case errors.As(err, &none) && none.IsAmbiguous:
		return translate.Invalid("ambiguous_id", "", "The ids of several conversations begin with "+none.ID+": give more of it.")
	case errors.As(err, &none):
		return translate.NewError(translate.KindResponseNotFound, "conversation_not_found", "",
			"There is no stored conversation "+none.ID+": it was never stored, or has been deleted.")
	case errors.As(err, &tooDeep):
		return translate.Invalid("conversation_too_long", "", "The conversation has as many turns as one can have. Begin a new one.")
	}
	return asRefusedBySystem(c, err)
}

// asRefusedBySystem is the error of what the system or the database refused, or of what is nobody's fault but ours.
func asRefusedBySystem(c *Call, err error) *translate.Error {
	log := c.Site.Log.With("request", c.ID, "path", c.Request.URL.Path, "error", err)
	switch {
	case openfiles.AreExhausted(err):
		return NoFiles(c, err)
	case errors.Is(err, store.ErrBusy):
		log.Error("the store is busy")
		return unavailable("store_busy", "The server's database is busy: another program keeps it locked, such as an open sqlite3 shell "+
			"or a backup, or too much waits to be written. Try again in a moment.")
	case IsDiskFull(err):
		log.Error("the disk is full")
		const message = "The server's disk is full, or its quota on it, so nothing can be stored. Free some space on it, and try again."
		return &translate.Error{Kind: translate.KindDiskFull, Message: message}
	case errors.Is(err, store.ErrUnavailable):
		log.Error("the store is unavailable")
		return unavailable("store_unavailable", "The server's store of tokens and conversations can't be used at the moment. Try again "+
			"soon; its administrator finds the reason in the server's log and health.")
	case errors.Is(err, runs.ErrShutDown):
		return ShuttingDown("The server is shutting down.")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return translate.NewError(translate.KindUnavailable, "cancelled", "", "The request ended before it could be answered.")
	default:
		log.Error("a request failed")
		return ourFault(c)
	}
}

func ourFault(c *Call) *translate.Error {
	message := "The server made a mistake. Its log says more, under this request's id: " + c.ID
	return &translate.Error{Kind: translate.KindInternal, Message: message}
}

// unavailable is the error of what may work again in a few seconds.
func unavailable(code, message string) *translate.Error {
	return &translate.Error{Kind: translate.KindUnavailable, Code: code, Message: message, RetryAfter: 5 * time.Second}
}

const tooManyFiles = "too_many_open_files"

// NoFiles is the error of a request for which there was no file descriptor.
func NoFiles(c *Call, err error) *translate.Error {
	if skipped, ok := c.Site.loadErrors.tell(tooManyFiles); ok {
		c.Site.Log.Error("no file descriptor is left", "request", c.ID, "path", c.Request.URL.Path, "error", err, "not_logged", skipped)
	}
	return &translate.Error{Kind: translate.KindUnavailable, Code: tooManyFiles, Message: openfiles.Message, RetryAfter: time.Second}
}

// IsDiskFull reports whether an error says that a disk, or a quota on it, is full.
func IsDiskFull(err error) bool {
	isFull := func(reason error) bool { return errors.Is(err, reason) }
	return slices.ContainsFunc([]error{store.ErrFull, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}, isFull)
}

// asRefused is the error of a request that the supervisor refused, as err tells.
func asRefused(c *Call, e schedule.Error, err error) *translate.Error {
	switch e.Kind {
	case schedule.NotLoaded:
		return translate.NewError(translate.KindModelNotFound, "model_not_loaded", "model", e.Message)
	case schedule.NoInstance:
		return translate.NewError(translate.KindModelNotFound, "", "instance_id", e.Message)
	case schedule.NotOurs:
		return translate.Invalid("not_supported", "instance_id", e.Message)
	case schedule.RemoteAway:
		away := translate.NewError(translate.KindUnavailable, "remote_unreachable", "model", e.Message)
		away.RetryAfter = e.RetryAfter
		return away
	case schedule.IDTaken:
		return translate.NewError(translate.KindConflict, "identifier_in_use", "identifier", e.Message)
	case schedule.Closing:
		return ShuttingDown(e.Message)
	case schedule.NoFiles:
		return NoFiles(c, e)
	case schedule.QueueFull:
		return &translate.Error{Kind: translate.KindQueueFull, Param: "model", Message: e.Message, RetryAfter: e.RetryAfter}
	case schedule.NeverFits:
		return translate.NewError(translate.KindUnavailable, "model_too_large", "model", e.Message)
	default:
		key := ""
		if about, ok := errors.AsType[*NotLeased](err); ok {
			key = about.Key
		}
		if skipped, ok := c.Site.loadErrors.tell(key); ok {
			c.Site.Log.Error("a model could not be loaded", "request", c.ID, "model", key, "error", e.Message, "not_logged", skipped)
		}
		why := c.Node.HidePaths(e.Message)
		return &translate.Error{Kind: translate.KindUnavailable, Param: "model", Message: why, RetryAfter: e.RetryAfter}
	}
}

// fetchKinds says what clients see of each kind of download error. If no code is given, it is the kind's own.
var fetchKinds = map[hub.Kind]struct {
	kind translate.Kind
	code string
}{
	hub.Invalid:        {translate.KindInvalid, "invalid_value"},
	hub.NotImplemented: {translate.KindNotImplemented, ""},
	hub.ModelNotFound:  {translate.KindModelNotFound, ""},
	hub.JobNotFound:    {translate.KindJobNotFound, ""},
	hub.Conflict:       {translate.KindConflict, ""},
	hub.Denied:         {translate.KindForbidden, "hub_denied"}, // no 401: the client's own token isn't at fault
	hub.TooLarge:       {translate.KindInvalid, "model_too_large"},
	hub.NoSpace:        {translate.KindDiskFull, ""},
	hub.Busy:           {translate.KindHubBusy, ""}, // no 429: that is for clients who ask too much of us
	hub.HubFailed:      {translate.KindHubFailed, ""},
	hub.Unsafe:         {translate.KindHubFailed, "unsafe_file_name"},
	hub.Changed:        {translate.KindHubFailed, "file_changed"},
	hub.Cancelled:      {translate.KindConflict, "cancelled"},
}

// FetchError is the error of a download as clients see it.
func FetchError(c *Call, e *hub.Error) *translate.Error {
	as := fetchKinds[e.Kind] // the zero value is a fault of ours
	return &translate.Error{Kind: as.kind, Code: as.code, Param: e.Param, Message: c.Node.HidePaths(e.Message), RetryAfter: e.RetryAfter}
}

// WriteJSON answers with JSON in one piece.
func (c *Call) WriteJSON(status int, body []byte) { c.Write(status, TypeJSON, body) }

// Write answers with a body in one piece.
func (c *Call) Write(status int, contentType string, body []byte) {
	begin(c, status, contentType, len(body))
	if c.Request.Method == http.MethodHead {
		return
	}
	for piece := range slices.Chunk(body, bodyPiece) {
		if c.Client.write(piece, len(body) > bodyPiece) != nil {
			return // the client has disconnected
		}
	}
}

func begin(c *Call, status int, contentType string, size int) {
	h := c.Writer.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(size))
	c.Begun, c.Ledger.Summary.Status = true, status
	c.Writer.WriteHeader(status)
}

// ShuttingDown is the error of a request for which the server has no time left.
func ShuttingDown(message string) *translate.Error { return unavailable("shutting_down", message) }

// NotLeased is the reason why a request got no instance of a model.
type NotLeased struct {
	Key string // of the model
	Err error
}

func (e *NotLeased) Error() string { return e.Err.Error() }

func (e *NotLeased) Unwrap() error { return e.Err }

// Answer answers with a value as JSON, and status 200.
func (c *Call) Answer(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.WriteJSON(http.StatusOK, body)
	return nil
}

// Quoted quotes what a client sent, shortened for a message.
func Quoted(s string) string { return translate.QuoteShort(s) }

const quietTime = time.Second // how long a message about a model is not repeated

type quiet struct {
	mu    sync.Mutex
	about map[string]*lastLogged
}

type lastLogged struct {
	at      time.Time
	skipped int // since
}

// tell reports whether a message about a model is to be logged now, and how many were skipped since the last one.
func (q *quiet) tell(key string) (skipped int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.about == nil {
		q.about = map[string]*lastLogged{}
	}
	last := q.about[key]
	if last == nil {
		last = &lastLogged{}
		q.about[key] = last
	}
	if time.Since(last.at) < quietTime {
		last.skipped++
		return 0, false
	}
	skipped = last.skipped
	*last = lastLogged{at: time.Now()}
	return skipped, true
}
