package native

import (
	"cmp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Errors writes errors in the format of the native API, v1 and v0.
type Errors struct{}

// Status returns the status of the error's kind.
func (Errors) Status(e *translate.Error) int { return e.Status() }

// AppendError appends {"error":{"type","message","code","param"}}, the last two unless they are empty.
func (Errors) AppendError(dst []byte, e *translate.Error, _ string) []byte {
	return jsonbody.AppendJSON(dst, errorBody{errorObjectOf(e)})
}

// AppendErrorObject appends only the inner object, for events of streams and for download jobs.
func AppendErrorObject(dst []byte, e *translate.Error) []byte {
	return jsonbody.AppendJSON(dst, errorObjectOf(e))
}

func errorObjectOf(e *translate.Error) errorObject {
	return errorObject{cmp.Or(errorTypes[e.Kind], "invalid_request"), e.Message, e.EffectiveCode(), e.Param}
}

// errorTypes are the types of errors other than "invalid_request".
var errorTypes = map[translate.Kind]string{
	translate.KindInternal:       "internal_error",
	translate.KindNotImplemented: "not_implemented",
	translate.KindModelNotFound:  "model_not_found",
	translate.KindEngineFailed:   "internal_error",
	translate.KindUnavailable:    "internal_error",
	translate.KindStalled:        "internal_error",
	translate.KindJobNotFound:    "job_not_found",
	translate.KindHubFailed:      "internal_error",
	translate.KindHubBusy:        "internal_error",
	translate.KindDiskFull:       "internal_error",
	translate.KindMCPFailed:      "mcp_connection_error",
	translate.KindPluginFailed:   "plugin_connection_error",
}

type (
	errorBody struct {
		Error errorObject `json:"error"`
	}
	errorObject struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
		Param   string `json:"param,omitempty"`
	}
)
