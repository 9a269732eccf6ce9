package translate

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is the error that clients see, in every dialect. It is comparable.
type Error struct {
	Kind       Kind
	Code       string        // a stable word for programs; empty for that of the kind
	Param      string        // the field of the request that is at fault
	Message    string        // what is wrong and what to do next
	RetryAfter time.Duration // 0 if unknown
	Answered   int           // the status that an engine refused the request with, for a reason that isn't known; 0: it didn't

	// The length of the prompt and its limit in tokens, with KindContextOverflow.
	Tokens, Limit int
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Status returns the HTTP status of the error. A dialect may use another.
func (e *Error) Status() int { return kinds[e.Kind].status }

// EffectiveCode returns the code of the error, or else of its kind. It may be empty.
func (e *Error) EffectiveCode() string { return cmp.Or(e.Code, kinds[e.Kind].code) }

// IsRetryable reports whether the same request may succeed when it is sent again.
func (e *Error) IsRetryable() bool {
	switch e.Kind {
	case KindQueueFull, KindRateLimited, KindEngineFailed, KindStalled, KindHubFailed, KindHubBusy:
		return true
	default:
		return e.RetryAfter > 0 // a time to retry implies that a retry makes sense
	}
}

// IsBrokenOff reports whether the engine died in the middle of its answer, without an error of its own.
func (e *Error) IsBrokenOff() bool { return *e == *BrokenOff() }

// IsUnparsed reports whether the engine couldn't parse what the model said.
func (e *Error) IsUnparsed() bool { return *e == *Unparsed() }

// Header sets the headers of the error: Retry-After, and the one by which the official clients decide whether to retry.
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

// Kind classifies an error by what the client can do about it.
type Kind uint8

// The kinds. Each has a row in the table below.
const (
	KindInternal            Kind = iota // a bug in this server
	KindInvalid                         // the request is wrong
	KindNotImplemented                  // the request is valid, but this server can't do it
	KindContextOverflow                 // the prompt is longer than the context
	KindModelNotFound                   // no such model or instance
	KindResponseNotFound                // no such stored response
	KindPathNotFound                    // no such endpoint
	KindMethodNotAllowed                // the endpoint has no such method
	KindTooLarge                        // the body exceeds the limit
	KindUnsupportedEncoding             // the body has an unknown compression
	KindQueueFull                       // too many requests are waiting
	KindEngineFailed                    // the engine died or gave an invalid answer
	KindUnavailable                     // the model can't be loaded
	KindStalled                         // the engine stopped answering
	KindForbidden                       // the request is valid, but not permitted
	KindUnauthorized                    // there is no valid token
	KindRateLimited                     // the token's limit is used up
	KindConflict                        // not possible in the current state
	KindJobNotFound                     // no such download
	KindHubFailed                       // a model hub is unreachable, or gave an invalid answer
	KindHubBusy                         // a model hub asks to retry later
	KindDiskFull                        // there is no room to store something
	KindMCPFailed                       // an MCP server that the request names failed
	KindPluginFailed                    // an MCP server that the operator configured failed
)

// kinds has the status of each kind, and the code of errors without one.
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
	KindMCPFailed:           {400, ""},
	KindPluginFailed:        {400, ""},
}

// Word returns the kind in one word, for metrics and logs.
func (k Kind) Word() string {
	switch k {
	case KindInvalid:
		return "invalid_request"
	case KindMCPFailed:
		return "mcp_failed"
	case KindPluginFailed:
		return "plugin_failed"
	default:
		return kinds[k].code
	}
}

// Words returns the kinds in one word each.
func Words() []string {
	words := make([]string, len(kinds))
	for k := range kinds {
		words[k] = Kind(k).Word()
	}
	return words
}

// Dialect writes the errors of a family of endpoints.
type Dialect interface {
	// AppendError appends the body of an error response. A dialect may leave out the request id.
	AppendError(dst []byte, e *Error, requestID string) []byte
	// Status returns the HTTP status of the response.
	Status(e *Error) int
}

// NewError returns an error of a kind. An empty code is that of the kind.
func NewError(kind Kind, code, param, message string) *Error {
	return &Error{Kind: kind, Code: code, Param: param, Message: message}
}

// Invalid returns an error about a field of the request. code is a word such as "invalid_value".
func Invalid(code, param, message string) *Error {
	return &Error{Kind: KindInvalid, Code: code, Param: param, Message: message}
}

// Refused returns an error that begins with the quoted name of the field: says, which is formatted, follows it.
func Refused(code, param, says string, args ...any) *Error {
	return Invalid(code, param, `"`+param+`" `+fmt.Sprintf(says, args...))
}

// BadValue is [Refused] with the code "invalid_value".
func BadValue(param, says string, args ...any) *Error {
	return Refused("invalid_value", param, says, args...)
}

// Missing returns the error about a required field that is missing.
func Missing(param string) *Error {
	return Refused("missing_required_parameter", param, "is required")
}

// Overflow returns the error of a prompt that is longer than the context.
func Overflow(tokens, limit int) *Error {
	if tokens == limit {
		return tooLong("messages", tokens, limit,
			"The prompt has %d tokens, which is all of the context length and leaves no room for an answer.", tokens)
	}
	return tooLong("messages", tokens, limit, "The prompt has %d tokens, but the context length is %d.", tokens, limit)
}

// SurelyTooLong returns the error of a prompt with more tokens than the context, however it is tokenized.
func SurelyTooLong(param string, least, limit int) *Error {
	return tooLong(param, least, limit, "The prompt has at least %d tokens, but the context length is %d.", least, limit)
}

func tooLong(param string, tokens, limit int, says string, args ...any) *Error {
	return &Error{
		Kind: KindContextOverflow, Param: param, Tokens: tokens, Limit: limit,
		Message: fmt.Sprintf(says, args...) + " Shorten the prompt, or load the model with a larger context_length.",
	}
}

// BrokenOff returns the error of a stream that ended too early.
func BrokenOff() *Error {
	return &Error{Kind: KindEngineFailed, Message: "The engine stopped in the middle of its answer. The next request starts it anew."}
}

// Nonsense returns the error of an engine's answer that can't be parsed.
func Nonsense() *Error {
	return &Error{Kind: KindEngineFailed, Message: "The engine's answer can't be read. Its log says more."}
}

// EngineStatus returns the error of an engine, or another server, that answers with an unexpected status, for a reason that it gives.
func EngineStatus(who string, status int, reason string) *Error {
	return &Error{Kind: KindEngineFailed, Answered: status, Message: who + " answered with status " + strconv.Itoa(status) + ": " + reason}
}

// FormatNotMet is the code of an answer that the engine's parser rejects.
const FormatNotMet = "format_not_met"

// Unparsed returns the error of an answer that the engine couldn't parse.
func Unparsed() *Error {
	return &Error{
		Kind: KindEngineFailed, Code: FormatNotMet,
		Message: "The model's answer broke off, since it doesn't keep to the format that it was held to. " +
			"Try again, with a lower temperature or another seed.",
	}
}

// QuoteShort quotes a client's text, shortened for a message.
func QuoteShort(s string) string {
	const enough = 100
	if len(s) > enough {
		s = strings.ToValidUTF8(s[:enough], "") + "…"
	}
	return `"` + s + `"`
}
