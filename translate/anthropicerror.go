package translate

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
)

// AnthropicErrors writes errors as Anthropic's API does.
type AnthropicErrors struct{}

// anthropicTypes are the types of errors that aren't "invalid_request_error".
var anthropicTypes = map[Kind]string{
	KindInternal:         "api_error",
	KindModelNotFound:    "not_found_error",
	KindResponseNotFound: "not_found_error",
	KindPathNotFound:     "not_found_error",
	KindTooLarge:         "request_too_large",
	KindQueueFull:        "rate_limit_error",
	KindEngineFailed:     "api_error",
	KindUnavailable:      "overloaded_error",
	KindStalled:          "timeout_error",
	KindForbidden:        "permission_error",
	KindUnauthorized:     "authentication_error",
	KindRateLimited:      "rate_limit_error",
	KindJobNotFound:      "not_found_error",
	KindHubFailed:        "api_error",
	KindHubBusy:          "overloaded_error",
	KindDiskFull:         "api_error",
}

// statusOverloaded is what Anthropic's API answers with in place of 503: its clients then try again after a while.
const statusOverloaded = 529

// Status is 529 where others have 503, if the request is worth sending again.
func (AnthropicErrors) Status(e *Error) int {
	status := e.Status()
	if status == http.StatusServiceUnavailable && e.IsRetryable() {
		return statusOverloaded
	}
	return status
}

// AppendError appends {"type":"error","error":{"type","message"},"request_id"}. There is no place for the field that is at
// fault, so the message begins with it. Agents recognize a prompt that is too long by the words, and shorten it.
func (d AnthropicErrors) AppendError(dst []byte, e *Error, requestID string) []byte {
	kind, message := cmp.Or(anthropicTypes[e.Kind], "invalid_request_error"), e.Message
	switch named := strings.TrimPrefix(message, `"`); {
	case e.Kind == KindContextOverflow && e.Tokens > 0:
		most := e.Limit
		if e.Tokens == most { // one is for the answer
			most--
		}
		message = "prompt is too long: " + strconv.Itoa(e.Tokens) + " tokens > " + strconv.Itoa(most) + " maximum"
	case e.Param != "" && !strings.HasPrefix(named, e.Param):
		message = e.Param + ": " + message
	}
	if d.Status(e) == http.StatusServiceUnavailable {
		kind = "api_error" // trying again later is of no use
	}
	body := anthropicError{Type: "error", Error: anthropicErrorBody{kind, message}}
	if requestID != "" {
		body.RequestID = &requestID
	}
	return appendJSON(dst, body)
}

type (
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
