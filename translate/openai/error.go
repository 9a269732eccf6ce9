package openai

import (
	"cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Errors writes errors as OpenAI's API does. The types and codes are those from which the official clients choose
// their exceptions.
type Errors struct{}

// Status is the status of the error's kind.
func (Errors) Status(e *translate.Error) int { return e.Status() }

// AppendError appends {"error":{"message","type","param","code"}}, always with all four.
func (Errors) AppendError(dst []byte, e *translate.Error, _ string) []byte {
	kind := cmp.Or(errorTypes[e.Kind], "invalid_request_error")
	return jsonbody.AppendJSON(dst, errorBody{errorObject{e.Message, kind, orNil(e.Param), orNil(e.EffectiveCode())}})
}

// errorTypes are the types of errors that aren't the request's fault.
var errorTypes = map[translate.Kind]string{
	translate.KindInternal:     "server_error",
	translate.KindQueueFull:    "rate_limit_exceeded",
	translate.KindEngineFailed: "server_error",
	translate.KindUnavailable:  "server_error",
	translate.KindStalled:      "server_error",
	translate.KindRateLimited:  "rate_limit_exceeded",
	translate.KindHubFailed:    "server_error",
	translate.KindHubBusy:      "server_error",
	translate.KindDiskFull:     "server_error",
}

type (
	errorBody struct {
		Error errorObject `json:"error"`
	}
	errorObject struct {
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
