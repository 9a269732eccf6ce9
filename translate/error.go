package translate

import (
	"net/http"
	"strings"
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

// Invalid is an error about a field of the request: code is a word such as "invalid_value".
func Invalid(code, param, message string) *Error {
	return &Error{Kind: KindInvalid, Code: code, Param: param, Message: message}
}

// Missing is the error about a required field that isn't there.
func Missing(param string) *Error {
	return Invalid("missing_required_parameter", param, `"`+param+`" is required`)
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

// kinds gives each kind's status, and its type in each dialect. The OpenAI-style types and codes follow what the
// official clients make their exceptions of.
var kinds = [...]struct {
	status                     int
	native, openai, openaiCode string
	anthropic                  string
}{
	KindInternal:            {500, "internal_error", "server_error", "internal_error", "api_error"},
	KindInvalid:             {400, "invalid_request", "invalid_request_error", "", "invalid_request_error"},
	KindNotImplemented:      {400, "not_implemented", "invalid_request_error", "not_implemented", "invalid_request_error"},
	KindContextOverflow:     {400, "invalid_request", "invalid_request_error", "context_length_exceeded", "invalid_request_error"},
	KindModelNotFound:       {404, "model_not_found", "invalid_request_error", "model_not_found", "not_found_error"},
	KindResponseNotFound:    {404, "invalid_request", "invalid_request_error", "response_not_found", "not_found_error"},
	KindPathNotFound:        {404, "invalid_request", "invalid_request_error", "unknown_endpoint", "not_found_error"},
	KindMethodNotAllowed:    {405, "invalid_request", "invalid_request_error", "method_not_allowed", "invalid_request_error"},
	KindTooLarge:            {413, "invalid_request", "invalid_request_error", "request_too_large", "request_too_large"},
	KindUnsupportedEncoding: {415, "invalid_request", "invalid_request_error", "unsupported_encoding", "invalid_request_error"},
	KindQueueFull:           {429, "invalid_request", "rate_limit_exceeded", "queue_full", "rate_limit_error"},
	KindEngineFailed:        {502, "internal_error", "server_error", "engine_failed", "api_error"},
	KindUnavailable:         {503, "internal_error", "server_error", "model_load_failed", "overloaded_error"},
	KindStalled:             {504, "internal_error", "server_error", "engine_stalled", "timeout_error"},
	KindForbidden:           {403, "invalid_request", "invalid_request_error", "forbidden", "permission_error"},
	KindUnauthorized:        {401, "invalid_request", "invalid_request_error", "invalid_api_key", "authentication_error"},
	KindRateLimited:         {429, "invalid_request", "rate_limit_exceeded", "rate_limit_exceeded", "rate_limit_error"},
	KindConflict:            {409, "invalid_request", "invalid_request_error", "conflict", "invalid_request_error"},
	KindJobNotFound:         {404, "job_not_found", "invalid_request_error", "job_not_found", "not_found_error"},
	KindHubFailed:           {502, "internal_error", "server_error", "hub_failed", "api_error"},
	KindHubBusy:             {503, "internal_error", "server_error", "hub_busy", "overloaded_error"},
	KindDiskFull:            {507, "internal_error", "server_error", "disk_full", "api_error"},
}

// Status is the HTTP status of the error where it can still be told by one. A dialect may have another.
func (e *Error) Status() int { return kinds[e.Kind].status }

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
func (e *Error) IsBrokenOff() bool { return *e == *brokenOff() }

func (e *Error) code() string {
	if e.Code != "" {
		return e.Code
	}
	return kinds[e.Kind].openaiCode
}

// Dialect is the family of endpoints that an error is told in.
type Dialect uint8

// The dialects. Native is v1 and v0.
const (
	Native Dialect = iota
	OpenAI
	Anthropic
)

// Append appends the error's body in the dialect. The request's id is told where the dialect has a place for it.
func (d Dialect) Append(dst []byte, e *Error, requestID string) []byte {
	row := kinds[e.Kind]
	switch d {
	case OpenAI:
		return appendJSON(dst, openAIError{openAIErrorBody{e.Message, row.openai, orNil(e.Param), orNil(e.code())}})
	case Anthropic:
		return appendJSON(dst, e.anthropic(requestID))
	default:
		return appendJSON(dst, nativeError{e.nativeBody()})
	}
}

func (e *Error) nativeBody() nativeErrorBody {
	return nativeErrorBody{kinds[e.Kind].native, e.Message, e.code(), e.Param}
}

// native is the error object of the native stream.
func (e *Error) native() []byte { return appendJSON(nil, e.nativeBody()) }

// anthropic is the envelope of the Messages API. It has no place for the field that is at fault, so the message begins with
// it. Agents know a prompt that is too long by the words, and make it shorter.
func (e *Error) anthropic(requestID string) anthropicError {
	kind, message := kinds[e.Kind].anthropic, e.Message
	switch named := strings.TrimPrefix(message, `"`); {
	case e.Kind == KindContextOverflow && e.Tokens > 0:
		most := e.Limit
		if e.Tokens == most { // one is for the answer
			most--
		}
		message = "prompt is too long: " + itoa(e.Tokens) + " tokens > " + itoa(most) + " maximum"
	case e.Param != "" && !strings.HasPrefix(named, e.Param):
		message = e.Param + ": " + message
	}
	if Anthropic.Status(e) == http.StatusServiceUnavailable {
		kind = "api_error" // to come back later is of no use
	}
	return anthropicError{"error", anthropicErrorBody{kind, message}, orNil(requestID)}
}

// statusOverloaded is what Anthropic's API has instead of 503: its clients come back after a while.
const statusOverloaded = 529

// Status is the HTTP status of the error in the dialect, where it can still be told by one.
func (d Dialect) Status(e *Error) int {
	status := e.Status()
	if d == Anthropic && status == http.StatusServiceUnavailable && e.IsRetryable() {
		return statusOverloaded
	}
	return status
}

// Header sets the headers that go with the error: Retry-After, and the word by which the official clients decide whether
// to try again.
func (e *Error) Header(h http.Header) {
	if e.Kind == KindUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="lmcaddy"`)
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", itoa(int((e.RetryAfter+time.Second-1)/time.Second)))
	}
	if e.Status() >= 500 && !e.IsRetryable() {
		h.Set("X-Should-Retry", "false")
	}
}

type (
	openAIError struct {
		Error openAIErrorBody `json:"error"`
	}
	openAIErrorBody struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	nativeError struct {
		Error nativeErrorBody `json:"error"`
	}
	nativeErrorBody struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
		Param   string `json:"param,omitempty"`
	}
	anthropicError struct {
		Type      string             `json:"type"`
		Error     anthropicErrorBody `json:"error"`
		RequestID *string            `json:"request_id"`
	}
	anthropicErrorBody struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
)

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
