package translate

import "cmp"

// NativeErrors writes errors as the native API does, v1 and v0.
type NativeErrors struct{}

// nativeTypes are the types of errors that aren't "invalid_request".
var nativeTypes = map[Kind]string{
	KindInternal:       "internal_error",
	KindNotImplemented: "not_implemented",
	KindModelNotFound:  "model_not_found",
	KindEngineFailed:   "internal_error",
	KindUnavailable:    "internal_error",
	KindStalled:        "internal_error",
	KindJobNotFound:    "job_not_found",
	KindHubFailed:      "internal_error",
	KindHubBusy:        "internal_error",
	KindDiskFull:       "internal_error",
}

// AppendError appends {"error":{"type","message","code","param"}}, the last two only where they say something.
func (NativeErrors) AppendError(dst []byte, e *Error, _ string) []byte {
	return appendJSON(dst, nativeError{nativeErrorOf(e)})
}

// Status is the status of the error's kind.
func (NativeErrors) Status(e *Error) int { return e.Status() }

// AppendErrorObject appends the object alone, as the events of a stream and the jobs of downloads have it.
func AppendErrorObject(dst []byte, e *Error) []byte { return appendJSON(dst, nativeErrorOf(e)) }

func nativeErrorOf(e *Error) nativeErrorBody {
	return nativeErrorBody{cmp.Or(nativeTypes[e.Kind], "invalid_request"), e.Message, e.EffectiveCode(), e.Param}
}

type (
	nativeError struct {
		Error nativeErrorBody `json:"error"`
	}
	nativeErrorBody struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
		Param   string `json:"param,omitempty"`
	}
)
