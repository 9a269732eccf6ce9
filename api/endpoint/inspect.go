package endpoint

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Inspecting returns a writer that records what it writes, or the same if nothing is recorded.
func Inspecting(c *Call, w http.ResponseWriter) http.ResponseWriter {
	if c.Inspected == nil {
		return w
	}
	return &inspectedWriter{w, c.Inspected}
}

type inspectedWriter struct {
	http.ResponseWriter
	in *record.Inspection
}

// Unwrap is for [http.ResponseController].
func (w *inspectedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *inspectedWriter) WriteHeader(status int) {
	w.in.SetResponse(status, ShownHeader(w.Header()))
	w.ResponseWriter.WriteHeader(status)
}

func (w *inspectedWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.in.AddAnswer(p[:max(0, n)])
	return n, err
}

// harmless are the headers whose values are shown. Any other may be a secret, or carry one.
var harmless = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Allow", "Anthropic-Beta", "Anthropic-Version", "Cache-Control", "Connection",
	"Content-Encoding", "Content-Length", "Content-Type", "Origin", "Request-Id", "Retry-After", "User-Agent", "Vary", "X-Accel-Buffering",
	"X-Request-Id", "X-Should-Retry",
}

// mostOfHeader bounds what is shown of a header, in bytes, and mostOfPath what is shown of a path: both are the client's.
const mostOfHeader, mostOfPath = 32 << 10, 1 << 10

// ShownHeader is a header as administrators see it.
func ShownHeader(h http.Header) http.Header {
	shown, room := make(http.Header, len(h)), mostOfHeader
	left := 0
	for _, name := range slices.Sorted(maps.Keys(h)) {
		values := h[name]
		if !slices.Contains(harmless, name) && !strings.HasPrefix(name, "X-Stainless-") {
			values = []string{mask}
		}
		size := len(name)
		for _, v := range values {
			size += len(v)
		}
		if room -= size; room < 0 {
			left++
			continue
		}
		shown[name] = slices.Clone(values)
	}
	if left > 0 {
		shown["…"] = []string{fmt.Sprintf("%d more, which are too long", left)}
	}
	return shown
}

// ShownPath is a request's path as it is logged and shown, bounded.
func ShownPath(r *http.Request) string { return Presentable(r.URL.Path, mostOfPath) }

const mask = "***"

// mostSecrets is how many secrets of a body are masked, since each takes a pass over the body. One with more is masked as a whole.
const mostSecrets = 64

// withoutSecrets is the body of a request without the secrets of the MCP servers that it names: their headers and tokens, and of their URLs
// all but the host. It may be a request that is refused, with secrets in other places, and under misspelled names, than they belong.
func withoutSecrets(body []byte) []byte {
	parsed, m := gjson.ParseBytes(body), masker{body: body}
	for _, list := range []string{"tools", "integrations", "mcp_servers"} {
		m.search(parsed.Get(list))
	}
	if m.masked > mostSecrets {
		return []byte(`"` + mask + `"`)
	}
	return m.body
}

type masker struct {
	body   []byte
	masked int
}

// schemas are the fields of tools that describe arguments, whose names may be those of secrets.
var schemas = []string{"function", "parameters", "input_schema"}

var secretWords = []string{"header", "auth", "token", "secret", "password", "key", "cookie"}

// search masks the secrets in the members of an object, or of what is in an array.
func (m *masker) search(value gjson.Result) {
	value.ForEach(func(name, member gjson.Result) bool {
		key := strings.ToLower(name.Str)
		switch {
		case value.IsObject() && slices.Contains(schemas, key):
		case value.IsObject() && slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(key, word) }):
			m.maskAll(member)
		case strings.Contains(key, "url") && member.Type == gjson.String:
			shown := mask
			if u, err := url.Parse(member.Str); err == nil && u.Host != "" {
				shown = u.Scheme + "://" + u.Host + "/" + mask
			}
			m.hide(member, shown)
		case member.IsObject() || member.IsArray():
			m.search(member)
		}
		return m.masked <= mostSecrets
	})
}

func (m *masker) maskAll(value gjson.Result) {
	switch {
	case value.Type == gjson.String:
		m.hide(value, mask)
	case value.IsObject() || value.IsArray():
		value.ForEach(func(_, member gjson.Result) bool {
			m.maskAll(member)
			return m.masked <= mostSecrets
		})
	}
}

// hide puts something in the place of a string, wherever it is.
func (m *masker) hide(secret gjson.Result, shown string) {
	if m.masked++; secret.Raw != `""` && m.masked <= mostSecrets {
		m.body = bytes.ReplaceAll(m.body, []byte(secret.Raw), jsonbody.AppendString(nil, shown))
	}
}
