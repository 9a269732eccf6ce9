package translate

import (
	"cmp"
	"net/http"
	"strconv"
	"time"
)

// Error is the only error that clients see, whatever their dialect. It is comparable.
type Error struct {
	Kind       Kind
	Code       string        // a stable word for programs; the kind's own where empty
	Param      string        // the request's field that is at fault
	Message    string        // what is wrong and what to do next
	RetryAfter time.Duration // 0: not told

	// With KindContextOverflow: how long the prompt is and how long it may be, in tokens.
	Tokens, Limit int
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

// Status is the HTTP status of the error. A dialect may have another.
func (e *Error) Status() int { return kinds[e.Kind].status }

// EffectiveCode is the error's code, or else its kind's. It may be empty.
func (e *Error) EffectiveCode() string { return cmp.Or(e.Code, kinds[e.Kind].code) }

// IsRetryable tells whether the same request may succeed when it is sent again.
func (e *Error) IsRetryable() bool {
	switch e.Kind {
	case KindQueueFull, KindRateLimited, KindEngineFailed, KindStalled, KindHubFailed, KindHubBusy:
		return true
	default:
		return e.RetryAfter > 0 // who says when to come back means it
	}
}

// IsBrokenOff tells whether the error is that an answer ended before its end: the engine has died, and said nothing of why.
func (e *Error) IsBrokenOff() bool { return *e == *BrokenOff() }

// Header sets the headers that go with the error: Retry-After, and the word by which the official clients decide whether
// to try again.
func (e *Error) Header(h http.Header) {
	if e.Kind == KindUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="lmcaddy"`)
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	if e.Status() >= 500 && !e.IsRetryable() {
		h.Set("X-Should-Retry", "false")
	}
}

// Kind classes an error by what the client can do about it.
type Kind uint8

// The kinds. Each has a row in the table below.
const (
	KindInternal            Kind = iota // a fault of ours
	KindInvalid                         // the request is wrong
	KindNotImplemented                  // the request is right, but this server can't do it
	KindContextOverflow                 // the prompt is longer than the context
	KindModelNotFound                   // no such model or instance
	KindResponseNotFound                // no such stored response
	KindPathNotFound                    // no such endpoint
	KindMethodNotAllowed                // not with this method
	KindTooLarge                        // the body is over the limit
	KindUnsupportedEncoding             // the body is compressed in a way that isn't known
	KindQueueFull                       // too many requests wait
	KindEngineFailed                    // the engine died or spoke nonsense
	KindUnavailable                     // the model couldn't be loaded
	KindStalled                         // the engine stopped answering
	KindForbidden                       // the request is right, but this may not be done
	KindUnauthorized                    // without a valid token
	KindRateLimited                     // the token has used what it may
	KindConflict                        // not in the state that things are in
	KindJobNotFound                     // no such download
	KindHubFailed                       // a hub of models can't be reached, or spoke nonsense
	KindHubBusy                         // a hub of models wants us to come back later
	KindDiskFull                        // what is to be stored doesn't fit
)

// kinds gives each kind's status, and the code of an error that has none of its own.
var kinds = [...]struct {
	status int
	code   string
}{
	KindInternal:            {500, "internal_error"},
	KindInvalid:             {400, ""},
	KindNotImplemented:      {400, "not_implemented"},
	KindContextOverflow:     {400, "context_length_exceeded"},
	KindModelNotFound:       {404, "model_not_found"},
	KindResponseNotFound:    {404, "response_not_found"},
	KindPathNotFound:        {404, "unknown_endpoint"},
	KindMethodNotAllowed:    {405, "method_not_allowed"},
	KindTooLarge:            {413, "request_too_large"},
	KindUnsupportedEncoding: {415, "unsupported_encoding"},
	KindQueueFull:           {429, "queue_full"},
	KindEngineFailed:        {502, "engine_failed"},
	KindUnavailable:         {503, "model_load_failed"},
	KindStalled:             {504, "engine_stalled"},
	KindForbidden:           {403, "forbidden"},
	KindUnauthorized:        {401, "invalid_api_key"},
	KindRateLimited:         {429, "rate_limit_exceeded"},
	KindConflict:            {409, "conflict"},
	KindJobNotFound:         {404, "job_not_found"},
	KindHubFailed:           {502, "hub_failed"},
	KindHubBusy:             {503, "hub_busy"},
	KindDiskFull:            {507, "disk_full"},
}

// Dialect writes errors as one family of endpoints does.
type Dialect interface {
	// AppendError appends the body of a response that is an error. Dialects without a place for the request's id leave it out.
	AppendError(dst []byte, e *Error, requestID string) []byte
	// Status is the response's HTTP status.
	Status(e *Error) int
}

// Invalid is an error about a field of the request: code is a word such as "invalid_value".
func Invalid(code, param, message string) *Error {
	return &Error{Kind: KindInvalid, Code: code, Param: param, Message: message}
}

// Missing is the error about a required field that isn't there.
func Missing(param string) *Error {
	return Invalid("missing_required_parameter", param, `"`+param+`" is required`)
}

// Overflow is the error of a prompt that is longer than the context.
func Overflow(tokens, limit int) *Error {
	if tokens == limit {
		return &Error{
			Kind: KindContextOverflow, Param: "messages", Tokens: tokens, Limit: limit,
			Message: "The prompt has " + strconv.Itoa(tokens) + " tokens, which is all of the context length and leaves no room for an answer. Shorten the prompt, or load the model with a larger context_length.",
		}
	}
	return &Error{
		Kind: KindContextOverflow, Param: "messages", Tokens: tokens, Limit: limit,
		Message: "The prompt has " + strconv.Itoa(tokens) + " tokens, but the context length is " + strconv.Itoa(limit) +
			". Shorten the prompt, or load the model with a larger context_length.",
	}
}

// SurelyTooLong is the error of a prompt that has more tokens than the context holds, however it is cut into them.
func SurelyTooLong(param string, least, limit int) *Error {
	return &Error{
		Kind: KindContextOverflow, Param: param, Tokens: least, Limit: limit,
		Message: "The prompt has at least " + strconv.Itoa(least) + " tokens, but the context length is " + strconv.Itoa(limit) +
			". Shorten the prompt, or load the model with a larger context_length.",
	}
}

// BrokenOff is the error of a stream that ended before its end.
func BrokenOff() *Error {
	return &Error{Kind: KindEngineFailed, Message: "The engine stopped in the middle of its answer. The next request starts it anew."}
}

// Nonsense is the error of an engine's answer that can't be read.
func Nonsense() *Error {
	return &Error{Kind: KindEngineFailed, Message: "The engine's answer can't be read. Its log says more."}
}
