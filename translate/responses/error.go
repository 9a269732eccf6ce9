package responses

import (
	"net/http"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// previousNotFound is the code of a previous_response_id that is unknown.
const previousNotFound = "previous_response_not_found"

// Errors writes errors in the format of OpenAI's API, with the statuses and codes of the Responses API.
type Errors struct{}

// Status returns the status of the error's kind, except for an MCP server that failed, and for a previous response.
func (Errors) Status(e *translate.Error) int {
	switch {
	case isExternal(e) && e.EffectiveCode() == "":
		return http.StatusFailedDependency
	case e.Code == previousNotFound:
		return http.StatusBadRequest
	default:
		return e.Status()
	}
}

// AppendError appends {"error":{"message","type","param","code"}}, always with all four members.
func (Errors) AppendError(dst []byte, e *translate.Error, _ string) []byte {
	return jsonbody.AppendJSON(dst, openai.ErrorBody{Error: errorObjectOf(e)})
}

func errorObjectOf(e *translate.Error) openai.ErrorObject {
	o := openai.ErrorObject{Type: "invalid_request_error", Code: jsonbody.OrNull(e.EffectiveCode()), Message: e.Message, Param: jsonbody.OrNull(e.Param)}
	switch status := e.Status(); {
	case isExternal(e) && o.Code == nil:
		o.Type, o.Code, o.Param = "external_connector_error", jsonbody.OrNull("http_error"), jsonbody.OrNull("tools")
	case e.Kind == translate.KindResponseNotFound && e.Code == "":
		o.Code = nil
	case status == http.StatusTooManyRequests:
		o.Type = "rate_limit_exceeded"
	case status >= http.StatusInternalServerError:
		o.Type = "server_error"
	}
	return o
}

func isExternal(e *translate.Error) bool {
	return e.Kind == translate.KindMCPFailed || e.Kind == translate.KindPluginFailed
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// failureOf returns the failure in the words of the Responses API. Agents know "context_length_exceeded", too.
func failureOf(e *translate.Error) *failure {
	f := &failure{Code: "server_error", Message: e.Message}
	switch status := e.Status(); {
	case e.Kind == translate.KindContextOverflow:
		f.Code = e.EffectiveCode()
	case status == http.StatusTooManyRequests:
		f.Code = "rate_limit_exceeded"
	case status < http.StatusInternalServerError && !isExternal(e):
		f.Code = "invalid_prompt"
	}
	return f
}
