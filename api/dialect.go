package api

import (
	"bytes"
	"net/http"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Family is one of the API families, of which a site may serve some and not others.
type Family string

// The families.
const (
	FamilyNative    Family = "native"
	FamilyV0        Family = "v0"
	FamilyOpenAI    Family = "openai"
	FamilyAnthropic Family = "anthropic"
	FamilyOllama    Family = "ollama"
)

// dialect is an API as a kind of client knows it: which requests are in it, and the form of what every API has.
type dialect struct {
	name   string // in metrics and logs
	family Family
	errors translate.Dialect
	stream streamFormat

	// owns reports whether a request is in the dialect, whether or not there is such an endpoint.
	owns func(*http.Request) bool
	// unknownModel is the error of a name of no model, or of several; nil: the same as in most dialects.
	unknownModel func(*catalog.NotFoundError) *translate.Error

	routes []route
}

// streamFormat is the form of a dialect's streams.
type streamFormat struct {
	contentType string
	// keepAlive is what breaks a silence. A client has to skip it.
	keepAlive string
	// end is what all streams end with; nil: that differs.
	end []byte
	// appendFault appends an error in the dialect's JSON as an event.
	appendFault func(dst, fault []byte) []byte
}

// The types of answers. Without a charset, Python's requests reads streams as Latin-1, and cuts lines at U+0085.
const (
	typeJSON   = "application/json; charset=utf-8"
	typeLines  = "application/x-ndjson; charset=utf-8"
	typeEvents = "text/event-stream; charset=utf-8"
)

// comment is a server-sent event that every client skips.
const comment = ":\n\n"

// serverSent are the server-sent events of most dialects.
var serverSent = streamFormat{contentType: typeEvents, keepAlive: comment, appendFault: jsonbody.AppendFrame}

// isEnd reports whether a piece of an answer is its end. The server sends that together with the end of the body, when the call returns.
func (f *streamFormat) isEnd(p []byte) bool { return f.end != nil && bytes.HasSuffix(p, f.end) }
