package translate

import "cmp"

// OpenAIErrors writes errors as OpenAI's API does. The types and codes are those from which the official clients choose
// their exceptions.
type OpenAIErrors struct{}

// openAITypes are the types of errors that aren't the request's fault.
var openAITypes = map[Kind]string{
	KindInternal:     "server_error",
	KindQueueFull:    "rate_limit_exceeded",
	KindEngineFailed: "server_error",
	KindUnavailable:  "server_error",
	KindStalled:      "server_error",
	KindRateLimited:  "rate_limit_exceeded",
	KindHubFailed:    "server_error",
	KindHubBusy:      "server_error",
	KindDiskFull:     "server_error",
}

// AppendError appends {"error":{"message","type","param","code"}}, always with all four.
func (OpenAIErrors) AppendError(dst []byte, e *Error, _ string) []byte {
	kind := cmp.Or(openAITypes[e.Kind], "invalid_request_error")
	return appendJSON(dst, openAIError{openAIErrorBody{e.Message, kind, orNil(e.Param), orNil(e.EffectiveCode())}})
}

// Status is the status of the error's kind.
func (OpenAIErrors) Status(e *Error) int { return e.Status() }

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
)

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
