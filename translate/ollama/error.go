// Package ollama reads the requests of Ollama's API, and writes its answers: lines of JSON, or one object.
package ollama

import (
	"net/http"
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Errors writes errors in the format of Ollama's API.
type Errors struct{}

// Status returns the status of the error's kind, but 503 if the queue is full.
func (Errors) Status(e *translate.Error) int {
	if e.Kind == translate.KindQueueFull {
		return http.StatusServiceUnavailable
	}
	return e.Status()
}

// AppendError appends {"error":"…"}. The format has no other field.
func (Errors) AppendError(dst []byte, e *translate.Error, _ string) []byte {
	return append(jsonbody.AppendString(append(dst, `{"error":`...), e.Message), '}')
}

// NotFound returns the error of a model that isn't there. Clients recognize its words, and pull the model.
func NotFound(name string) *translate.Error {
	return &translate.Error{
		Kind: translate.KindModelNotFound, Param: "model", Message: "model " + strconv.Quote(name) + " not found, try pulling it first",
	}
}

// NotPulled returns the error of a model that can't be pulled, since only its bare name is given and nothing is known of that.
func NotPulled(name string) *translate.Error {
	e := NotFound(name)
	e.Message = "pull model manifest: file does not exist: model " + strconv.Quote(name) + " not found in the built-in list of models; " +
		"name it with its owner, such as hf.co/<owner>/<repository>:Q4_K_M"
	return e
}

// LacksSupport returns the error of a model that can't do something, such as "chat".
func LacksSupport(name, what string) *translate.Error {
	return translate.Invalid("unsupported_model", "model", strconv.Quote(name)+" does not support "+what)
}
