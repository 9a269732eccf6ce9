package mlxlm

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Fault parses an error response, {"error":"…"}. The server has status 404 for whatever goes wrong before it generates: a template
// that refuses the messages, or a tokenizer that can't read them.
func (Wire) Fault(status int, body []byte) *translate.Error {
	said := gjson.GetBytes(body, "error")
	message := said.Str
	if said.IsObject() { // of another server that speaks this protocol
		message = said.Get("message").Str
	}
	if isRefusal := gjson.ValidBytes(body) && message != ""; isRefusal && status == http.StatusNotFound {
		return translate.Invalid("invalid_value", "", "The engine refused the request: "+tidy(message))
	}
	return &translate.Error{Kind: translate.KindEngineFailed, Message: "The engine answered with status " + strconv.Itoa(status) + ": " + tidy(message)}
}

// tidy removes the server's paths from a message, and shortens it.
func tidy(message string) string {
	message = paths.ReplaceAllString(strings.ToValidUTF8(message, ""), "$1…")
	const enough = 500
	if len(message) > enough {
		message = strings.ToValidUTF8(message[:enough], "") + "…"
	}
	if message == "" {
		return "no reason was given."
	}
	return message
}

// paths matches absolute paths, on Windows as well.
var paths = regexp.MustCompile(`(^|[\s'"(=:])(?:[A-Za-z]:)?(?:[/\\][^\s/\\'")]+){2,}`)
