// Package openai implements the dialect of the OpenAI-style endpoints: chat completions, text completions, embeddings and
// ranks. The API v0 has the same endpoints, with additional members in the answers.
package openai

import (
	"cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Errors writes errors in the format of OpenAI's API. The official clients choose their exceptions by these types and codes.
type Errors struct{}

// Status returns the status of the error's kind.
func (Errors) Status(e *translate.Error) int { return e.Status() }

// AppendError appends {"error":{"message","type","param","code"}}, always with all four members.
func (Errors) AppendError(dst []byte, e *translate.Error, _ string) []byte {
	kind := cmp.Or(errorTypes[e.Kind], "invalid_request_error")
	return jsonbody.AppendJSON(dst, errorBody{errorObject{e.Message, kind, orNil(e.Param), orNil(e.EffectiveCode())}})
}

// errorTypes are the types of errors other than "invalid_request_error".
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
