package anthropic

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Errors writes errors in the format of Anthropic's API.
type Errors struct{}

// Status returns the status of the error's kind, but 529 for 503 if a retry makes sense.
func (Errors) Status(e *translate.Error) int {
	status := e.Status()
	if status == http.StatusServiceUnavailable && e.IsRetryable() {
		return statusOverloaded
	}
	return status
}

// AppendError appends {"type":"error","error":{"type","message"},"request_id"}. The format has no field for the parameter at
// fault, so the message begins with it. Agents recognize a prompt that is too long by the words of the message.
func (d Errors) AppendError(dst []byte, e *translate.Error, requestID string) []byte {
	kind, message := cmp.Or(errorTypes[e.Kind], "invalid_request_error"), e.Message
	switch named := strings.TrimPrefix(message, `"`); {
	case e.Kind == translate.KindContextOverflow && e.Tokens > 0:
		most := e.Limit
		if e.Tokens == most { // room for the answer
			most--
		}
		message = "prompt is too long: " + strconv.Itoa(e.Tokens) + " tokens > " + strconv.Itoa(most) + " maximum"
	case e.Param != "" && !strings.HasPrefix(named, e.Param):
		message = e.Param + ": " + message
	}
	if d.Status(e) == http.StatusServiceUnavailable {
		kind = "api_error" // a retry makes no sense
	}
	body := errorBody{Type: "error", Error: errorObject{kind, message}}
	if requestID != "" {
		body.RequestID = &requestID
	}
	return jsonbody.AppendJSON(dst, body)
}

// errorTypes are the types of errors other than "invalid_request_error".
var errorTypes = map[translate.Kind]string{
	translate.KindInternal:         "api_error",
	translate.KindModelNotFound:    "not_found_error",
	translate.KindResponseNotFound: "not_found_error",
	translate.KindPathNotFound:     "not_found_error",
	translate.KindTooLarge:         "request_too_large",
	translate.KindQueueFull:        "rate_limit_error",
	translate.KindEngineFailed:     "api_error",
	translate.KindUnavailable:      "overloaded_error",
	translate.KindStalled:          "timeout_error",
	translate.KindForbidden:        "permission_error",
	translate.KindUnauthorized:     "authentication_error",
	translate.KindRateLimited:      "rate_limit_error",
	translate.KindJobNotFound:      "not_found_error",
	translate.KindHubFailed:        "api_error",
	translate.KindHubBusy:          "overloaded_error",
	translate.KindDiskFull:         "api_error",
}

// statusOverloaded is what Anthropic's API uses for 503. Clients retry after a while.
const statusOverloaded = 529

type (
	errorBody struct {
		Type      string      `json:"type"`
		Error     errorObject `json:"error"`
		RequestID *string     `json:"request_id"`
	}
	errorObject struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
)
