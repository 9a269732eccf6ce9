package manage

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/translate"
)

const requestLimit = 100

// listRequests is GET /api/v1/requests: the requests to models that are in progress and the newest that have ended, the last to arrive
// first, and those that the option inspect keeps. An administrator sees everybody's, others their own.
func listRequests(c *endpoint.Call) error {
	recognizeAdmin(c)
	query := parametersOf(c)
	limit, outcome := query.limit(0, record.MaxInspect, requestLimit), query.Get("outcome")
	if query.err != nil {
		return query.err
	}
	var models []string // any of these; none: all
	if model := query.Get("model"); model != "" {
		models = namesOf(c, model)
	}
	list := resource.Requests{Requests: []resource.Request{}}
	for _, s := range allRequests(c) {
		if len(list.Requests) == limit {
			break
		}
		isAsked := (len(models) == 0 || slices.Contains(models, s.Model)) && (outcome == "" || s.Outcome == outcome)
		if isAsked && seesRequest(c, s.Summary) {
			described := describeRequest(s.Summary)
			described.Inspected = s.isInspected && c.IsAdmin()
			list.Requests = append(list.Requests, described)
		}
	}
	return c.Answer(list)
}

type listedRequest struct {
	*record.Summary
	isInspected bool
}

// allRequests are the requests that the node remembers, and those that it keeps whole.
func allRequests(c *endpoint.Call) []listedRequest {
	type name struct { // a client may give several requests the same id
		id      string
		arrived time.Time
	}
	inspected := map[name]*record.Summary{}
	for _, s := range c.Node.Record.Inspections.List() {
		inspected[name{s.ID, s.Arrived}] = &s
	}
	var all []listedRequest
	for _, s := range c.Node.Record.Requests.List() {
		at := name{s.ID, s.Arrived}
		_, isInspected := inspected[at]
		delete(inspected, at)
		all = append(all, listedRequest{s, isInspected})
	}
	if len(inspected) == 0 {
		return all
	}
	for _, s := range inspected {
		all = append(all, listedRequest{s, true})
	}
	slices.SortFunc(all, func(a, b listedRequest) int { return cmp.Or(b.Arrived.Compare(a.Arrived), cmp.Compare(a.ID, b.ID)) })
	return all
}

// seesRequest reports whether the identity may know of a request: an administrator of everybody's, others of their own.
func seesRequest(c *endpoint.Call, s *record.Summary) bool {
	return (c.IsAdmin() || s.Owner == c.Owner()) && (s.Model == "" || c.Identity.MayUseSome(s.Model))
}

// recognizeAdmin takes an administrator's token on a site without authentication, where others are ignored.
func recognizeAdmin(c *endpoint.Call) {
	if c.Identity != nil {
		return
	}
	if who, err := presented(c); err == nil && who != nil && who.May(access.ScopeAdmin) {
		c.Identity = who
		c.Follow(who, access.ScopeAdmin)
	}
}

// namesOf are the names that a model may have in what is kept of it. It may be gone from the disk.
func namesOf(c *endpoint.Call, model string) []string {
	names := []string{model}
	if target, err := c.Find(model); err == nil {
		names = append(names, target.Model.Key, target.Model.FullKey())
	}
	return names
}

func describeRequest(s *record.Summary) resource.Request {
	return resource.Request{
		ID: s.ID, ArrivedAt: s.Arrived.UTC(), Seconds: s.Duration.Seconds(), Outcome: s.Outcome, Method: s.Method, Path: s.Path,
		Dialect: s.Dialect, Status: s.Status, Stream: s.Streamed, Model: s.Model, Instance: s.Instance,
		Owner: s.Owner, TokenName: s.TokenName,
		TokensIn: s.Usage.Prompt, TokensCached: s.Usage.Cached, TokensOut: s.Usage.Completion, ToolCalls: s.Tools,
		Queue: s.Queue.Seconds(), Load: s.Load.Seconds(), Restore: s.Restore.Seconds(),
		FirstToken: s.FirstToken.Seconds(), PerToken: s.PerToken.Seconds(),
	}
}

// getRequest is GET /api/v1/requests/{id}.
func getRequest(c *endpoint.Call) error {
	in, ok := c.Node.Record.Inspections.Get(c.Param)
	switch {
	case !ok && !c.Node.Record.Inspections.IsOn():
		return translate.NewError(translate.KindPathNotFound, "inspection_off", "", "No requests are kept on this server: write "+
			"`inspect 100` among the options of lm in its Caddyfile, and reload it. From then on the last 100 are kept in memory.")
	case !ok:
		return translate.NewError(translate.KindPathNotFound, "request_not_found", "", "There is no request "+endpoint.Quoted(c.Param)+
			" among those that are kept: `inspect` in the Caddyfile says how many are.")
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
	whole.Status = cmp.Or(in.Status, whole.Status)
	return c.Answer(whole)
}

func message(header http.Header, body record.Text) resource.Message {
	return resource.Message{Header: header, Body: strings.ToValidUTF8(string(body.Beginning), "\uFFFD"), BodyBytes: body.Size}
}
