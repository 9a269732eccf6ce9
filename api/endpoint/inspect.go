package endpoint

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/node/record"
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
	"Accept", "Accept-Encoding", "Accept-Language", "Allow", "Anthropic-Beta", "Anthropic-Version", "Cache-Control", "Connection", "Content-Encoding",
	"Content-Length", "Content-Type", "Origin", "Request-Id", "Retry-After", "User-Agent", "Vary", "X-Accel-Buffering", "X-Request-Id", "X-Should-Retry",
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
