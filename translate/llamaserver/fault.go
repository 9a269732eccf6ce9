package llamaserver

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Fault parses an error response: {"error":{"code":400,"message":"…","type":"…"}}, with n_prompt_tokens and n_ctx if the prompt
// is too long.
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
	if refusal, ok := byTemplate(message); ok {
		return translate.Invalid("invalid_value", "messages", "The model's chat template refuses the messages: "+tidy(refusal))
	}
	switch {
	case e.Get("type").Str == "exceed_context_size_error":
		return translate.Overflow(int(e.Get("n_prompt_tokens").Int()), int(e.Get("n_ctx").Int()))
	case strings.HasPrefix(message, "Context size has been exceeded"):
		return &translate.Error{
			Kind:    translate.KindContextOverflow,
			Message: "The context is full. Shorten the prompt, or load the model with a larger context_length.",
		}
	case strings.Contains(message, "Infill is not supported"):
		return request.NoInfill()
	}
	code, param, isClients := refusal(status, message)
	switch {
	case status == 400, status == 501, isClients:
		return translate.Invalid(code, param, "The engine refused the request: "+tidy(message))
	case status == 503:
		return &translate.Error{Kind: translate.KindUnavailable, Message: "The engine is not ready: " + tidy(message)}
	default: // 401 and 404, too: never the client's fault
		return translate.EngineStatus("The engine", status, tidy(message))
	}
}

// clientsMistakes are the starts of messages about invalid requests, which may have status 500, and the client's code and field. The
// codes and types of llama-server's errors tell neither the field nor whose fault it is, so there is nothing else to go by. A message
// that changes is still passed on, as that of a failed engine if its status is 500.
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
	// The first and the last of these three are about the start of an answer in the request.
	{"The model produced output that does not match the expected", translate.FormatNotMet, "response_format"},
	{"Failed to initialize samplers: failed to parse grammar", "invalid_schema", "response_format"},
	{"Failed to initialize samplers", translate.FormatNotMet, "response_format"},
	{"invalid type for \"enable_thinking\"", "invalid_type", "chat_template_kwargs"},
}

// faultAmid returns the error that a stream tells. Once the answer has begun, the model's tokens are at fault, and not the request.
func faultAmid(said []byte, begun bool) *translate.Error {
	fault := faultOf(http.StatusInternalServerError, gjson.ParseBytes(said))
	if fault.Code == translate.FormatNotMet && begun {
		return translate.Unparsed()
	}
	return fault
}

// refusal returns what a message shows of the code and the field of a request, and whether the fault is surely the client's.
func refusal(status int, message string) (code, param string, isClients bool) {
	for _, m := range clientsMistakes {
		if strings.HasPrefix(message, m.start) {
			return m.code, m.param, true
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
	return code, param, false
}

// byTemplate returns what a chat template, or the library that renders it, has said of the messages, without the trace around it.
func byTemplate(message string) (refusal string, ok bool) {
	if trace, cause, ok := strings.Cut(message, "\nError: "); ok && strings.Contains(trace, "While executing ") {
		return strings.TrimPrefix(cause, "Jinja Exception: "), true
	}
	if strings.HasPrefix(message, "NotImplemented: ") { // something that the template uses, and the library lacks
		return message, true
	}
	if at := templatePlace.FindStringIndex(message); at != nil {
		return message[:at[0]], true
	}
	return "", false
}

// templatePlace matches what older builds add to such an error: the place in the template, and the lines around it.
var templatePlace = regexp.MustCompile(` at row \d+, column \d+:\n`)

// fieldAtFault matches the field in a message.
var fieldAtFault = regexp.MustCompile(`^Field '(\w+)': `)

// tidy removes what is of no use to a client from a message, and shortens it.
func tidy(message string) string {
	return wire.ShortReason(libraryPrefix.ReplaceAllString(message, ""))
}

// libraryPrefix matches the prefix of a JSON library's messages.
var libraryPrefix = regexp.MustCompile(`\[json\.exception\.[^\]]*\] ?`)
