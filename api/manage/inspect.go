package manage

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/translate"
)

// getRequest is GET /api/v1/requests/{id}.
func getRequest(c *endpoint.Call) error {
	in, ok := c.Node.Record.Inspections.Get(c.Param)
	switch {
	case !ok && !c.Node.Record.Inspections.IsOn():
		return &translate.Error{
			Kind: translate.KindPathNotFound, Code: "inspection_off",
			Message: "No requests are kept on this server: write `inspect 100` among the options of lm in its Caddyfile, and reload it. " +
				"From then on the last 100 are kept in memory.",
		}
	case !ok:
		return &translate.Error{
			Kind: translate.KindPathNotFound, Code: "request_not_found",
			Message: "There is no request " + endpoint.Quoted(c.Param) + " among those that are kept: `inspect` in the Caddyfile says how many are.",
		}
	}
	whole := resource.WholeRequest{
		Request: describeRequest(&in.Summary), Upstream: []resource.UpstreamExchange{},
		Client: message(in.Header, in.Body), Response: message(in.ResponseHeader, in.Answer),
	}
	for _, u := range in.Upstream {
		whole.Upstream = append(whole.Upstream, resource.UpstreamExchange{
			Instance: u.Instance, Path: u.Path, BeganAt: u.Began, Seconds: u.Duration.Seconds(), Status: u.Status,
			Request: message(nil, u.Body), Response: message(nil, u.Answer),
		})
	}
	if in.Status != 0 {
		whole.Status = in.Status
	}
	return c.Answer(whole)
}

func message(header http.Header, body record.Text) resource.Message {
	return resource.Message{Header: header, Body: strings.ToValidUTF8(string(body.Beginning), "\uFFFD"), BodyBytes: body.Size}
}
