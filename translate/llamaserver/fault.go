package llamaserver

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Fault reads the engine's error bodies: {"error":{"code":400,"message":"…","type":"…"}}, with n_prompt_tokens and n_ctx
// when the prompt is too long.
func (Wire) Fault(status int, body []byte) *translate.Error {
	return faultOf(status, gjson.GetBytes(body, "error"))
}

func faultOf(status int, e gjson.Result) *translate.Error {
	message := e.Get("message").Str
	if code := int(e.Get("code").Num); code >= 400 && code < 600 {
		status = code
	}
	if tokens, limit, ok := tooLongOf(message); ok {
		return translate.Overflow(tokens, limit)
	}
	switch {
	case e.Get("type").Str == "exceed_context_size_error":
		return translate.Overflow(int(e.Get("n_prompt_tokens").Int()), int(e.Get("n_ctx").Int()))
	case strings.HasPrefix(message, "Context size has been exceeded"):
		return &translate.Error{Kind: translate.KindContextOverflow, Message: "The context is full. Shorten the prompt, or load the model with a larger context_length."}
	case strings.Contains(message, "Infill is not supported"):
		return request.NoInfill()
	case status == 400, status == 501, isClientsMistake(message):
		code, param := refusal(status, message)
		return translate.Invalid(code, param, "The engine refused the request: "+tidy(message))
	case status == 503:
		return &translate.Error{Kind: translate.KindUnavailable, Message: "The engine is not ready: " + tidy(message)}
	default: // 401 and 404 too: the fault is ours or the engine's, never the client's
		return &translate.Error{Kind: translate.KindEngineFailed, Message: "The engine answered with status " + strconv.Itoa(status) + ": " + tidy(message)}
	}
}

// formatNotMet is the code of an answer that isn't what the engine's parser expects.
const formatNotMet = "format_not_met"

// clientsMistakes are what the engine's messages about a request begin with, which it may call its own fault, with status
// 500; and what the client is told of them.
var clientsMistakes = []struct{ start, code, param string }{
	{"Failed to parse tools", "invalid_value", "tools"},
	{"tools param requires", "invalid_value", "tools"},
	{"Failed to parse messages", "invalid_value", "messages"},
	{"Failed to parse tool call arguments", "invalid_value", "messages"},
	{"Unknown reasoning format", "invalid_value", "reasoning_format"},
	{"Invalid tool_choice", "invalid_value", "tool_choice"},
	{"Cannot use custom grammar constraints with tools", "invalid_value", "grammar"},
	{"Unable to generate parser for this template. Automatic parser generation failed: JSON schema", "invalid_schema", ""},
	{"Failed to load image", "invalid_image", "messages"},
	{"Invalid uri format", "invalid_image", "messages"},
	{"image input is not supported", "unsupported_content", "messages"},
	{"audio input is not supported", "unsupported_content", "messages"},
	{"unsupported content[].type", "unsupported_content", "messages"},
	{"Expected 'content' to be", "invalid_type", "messages"},
	{"All non-assistant messages must contain", "invalid_value", "messages"},
	{"Cannot have 2 or more assistant messages", "invalid_value", "messages"},
	{"top_logprobs requires logprobs", "invalid_value", "top_logprobs"},
	{"got exception: Unexpected empty grammar stack", "invalid_value", "grammar"},
	{"The model produced output that does not match the expected", formatNotMet, "response_format"}, // of an answer that the request began
	{"Failed to initialize samplers", formatNotMet, "response_format"},                              // the same
	{"invalid type for \"enable_thinking\"", "invalid_type", "chat_template_kwargs"},
}

func isClientsMistake(message string) bool {
	for _, m := range clientsMistakes {
		if strings.HasPrefix(message, m.start) {
			return true
		}
	}
	return false
}

// refusal makes a code of why the engine refused a request, and names the field, as far as its message shows them.
func refusal(status int, message string) (code, param string) {
	for _, m := range clientsMistakes {
		if strings.HasPrefix(message, m.start) {
			return m.code, m.param
		}
	}
	code = "invalid_value"
	if status == http.StatusNotImplemented {
		code = "not_supported"
	}
	if m := fieldAtFault.FindStringSubmatch(message); m != nil {
		param = m[1]
		if strings.Contains(message, "type must be ") {
			code = "invalid_type"
		}
	}
	return code, param
}

// fieldAtFault is how the engine's messages name a field.
var fieldAtFault = regexp.MustCompile(`^Field '(\w+)': `)

// tidy cuts what says nothing to a client, and what is too long to be an explanation.
func tidy(message string) string {
	message = libraryPrefix.ReplaceAllString(message, "")
	const enough = 500
	if len(message) > enough {
		message = strings.ToValidUTF8(message[:enough], "") + "…"
	}
	if message == "" {
		return "no reason was given."
	}
	return message
}

// libraryPrefix is what a JSON library puts before its messages.
var libraryPrefix = regexp.MustCompile(`\[json\.exception\.[^\]]*\] ?`)
