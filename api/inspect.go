package api

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
)

// getRequest is GET /api/v1/requests/{id}.
func (c *call) getRequest() error {
	in, ok := c.node.InspectedRequest(c.param)
	switch {
	case !ok && c.node.Settings().Inspect == 0:
		return inspectsNothing()
	case !ok:
		return &translate.Error{
			Kind: translate.KindPathNotFound, Code: "request_not_found",
			Message: "There is no request " + quoted(c.param) + " among those that are kept: `inspect` in the Caddyfile says how many are.",
		}
	}
	whole := resource.WholeRequest{
		Request: describeRequest(&in.Summary), Upstream: []resource.UpstreamExchange{},
		Client: message(in.Header, in.Body), Response: message(in.Given, in.Answer),
	}
	for _, u := range in.Upstream {
		whole.Upstream = append(whole.Upstream, resource.UpstreamExchange{
			Instance: u.Instance, Path: u.Path, BeganAt: u.Began, Seconds: u.Took.Seconds(), Status: u.Status,
			Request: message(nil, u.Asked), Response: message(nil, u.Answer),
		})
	}
	if in.Status != 0 {
		whole.Status = in.Status
	}
	return c.answer(whole)
}

func inspectsNothing() *translate.Error {
	return &translate.Error{
		Kind: translate.KindPathNotFound, Code: "inspection_off",
		Message: "No requests are kept on this server: write `inspect 100` among the options of lm in its Caddyfile, and reload it. From then on the last 100 are kept in memory.",
	}
}

func message(header http.Header, body node.Text) resource.Message {
	return resource.Message{Header: header, Body: strings.ToValidUTF8(string(body.Kept), "\uFFFD"), BodyBytes: body.Size}
}

// inspect keeps the request whole, if the settings say so.
func (c *call) inspect() {
	if c.node.Settings().Inspect == 0 {
		return
	}
	c.inspected = c.node.Inspect(node.Summary{
		ID: c.id, Arrived: c.arrived, Dialect: c.dialect.name, Method: c.r.Method, Path: shownPath(c.r), Owner: c.who.ID(),
	}, shownHeader(c.r.Header))
	c.w = c.inspecting(c.w)
}

// inspecting returns a writer that keeps what it writes, or the same if nothing is kept.
func (c *call) inspecting(w http.ResponseWriter) http.ResponseWriter {
	if c.inspected == nil {
		return w
	}
	return &inspectedWriter{w, c.inspected}
}

type inspectedWriter struct {
	http.ResponseWriter
	in *node.Inspection
}

// Unwrap is for [http.ResponseController].
func (w *inspectedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *inspectedWriter) WriteHeader(status int) {
	w.in.Begun(status, shownHeader(w.Header()))
	w.ResponseWriter.WriteHeader(status)
}

func (w *inspectedWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.in.Answered(p[:max(0, n)])
	return n, err
}

// inspectedReader keeps what is read of an engine's answer.
type inspectedReader struct {
	io.ReadCloser
	in *node.UpstreamInspection
}

func (r *inspectedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.in.Answered(p[:n])
	return n, err
}

// harmless are the headers whose values are shown. Any other may be a secret, or carry one.
var harmless = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Allow", "Anthropic-Beta", "Anthropic-Version", "Cache-Control", "Connection", "Content-Encoding",
	"Content-Length", "Content-Type", "Origin", "Request-Id", "Retry-After", "User-Agent", "Vary", "X-Accel-Buffering", "X-Request-Id", "X-Should-Retry",
}

// mostOfHeader bounds what is shown of a header, in bytes, and mostOfPath what is shown of a path: both are the client's.
const mostOfHeader, mostOfPath = 32 << 10, 1 << 10

// shownHeader is a header as administrators see it.
func shownHeader(h http.Header) http.Header {
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

func shownPath(r *http.Request) string { return presentable(r.URL.Path, mostOfPath) }
