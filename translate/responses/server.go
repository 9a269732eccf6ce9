package responses

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// echoedServer is what is told of a server. The URL is without its secrets.
type echoedServer struct {
	Type        string          `json:"type"`
	Label       string          `json:"server_label"`
	URL         string          `json:"server_url,omitempty"`
	Description string          `json:"server_description,omitempty"`
	Allowed     json.RawMessage `json:"allowed_tools"`
	Headers     *string         `json:"headers"` // always null
	Approval    string          `json:"require_approval"`
}

// server parses an MCP server. Its tools are called without approval: what a server of another kind would ask for is refused.
func (p *toolParser) server(m *jsonbody.Reader) *translate.Error {
	s := request.MCPServer{Param: m.Where, Label: m.Name("server_label"), URL: m.Text("server_url")}
	if s.Provider.Server = s.Label; s.URL == "" {
		s.Plugin = s.Label
	}
	for _, name := range []string{"connector_id", "tunnel_id"} {
		if jsonbody.IsGiven(m.Get(name)) {
			m.Refuse(translate.Refused("unsupported_parameter", m.At(name),
				`is not supported: give the server's "server_url", or the label of a server of mcp.json.`))
		}
	}
	m.Refuse(parseHeaders(&s, m))
	m.Refuse(parseAllowed(&s, m.At("allowed_tools"), gjson.ParseBytes(m.Get("allowed_tools"))))
	m.Refuse(checkApproval(m.At("require_approval"), gjson.ParseBytes(m.Get("require_approval"))))
	description := m.Text("server_description")
	for i := range p.Servers {
		if p.Servers[i].Label == s.Label {
			m.Refuse(translate.BadValue(m.At("server_label"),
				`is that of "%s", too: give each server a label of its own.`, p.Servers[i].Param))
		}
	}
	switch {
	case m.Err != nil:
		return m.Err
	case len(p.Servers) == request.MaxServers:
		return translate.BadValue("tools", "must hold at most %d MCP servers.", request.MaxServers)
	}
	p.Servers = append(p.Servers, s)
	echoed := echoedServer{
		Type: "mcp", Label: s.Label, URL: masked(s.URL), Description: description, Allowed: json.RawMessage("null"), Approval: "never",
	}
	if s.Restricted {
		echoed.Allowed = m.Get("allowed_tools")
	}
	p.echoed = append(p.echoed, jsonbody.AppendJSON(nil, echoed))
	return nil
}

// checkApproval refuses tools that may be called only with the client's approval.
func checkApproval(where string, v gjson.Result) *translate.Error {
	switch {
	case v.Type == gjson.Null, v.Str == "never":
		return nil
	case v.Str == "always", v.Get("always").Type != gjson.Null:
		return translate.Refused("unsupported_parameter", where,
			`must be "never", or left out: this server asks for no approvals. Leave tools that need one out of "allowed_tools".`)
	case v.IsObject():
		return nil // "never" for some tools; without "always" nothing is said of the others
	case v.Type == gjson.String:
		return translate.BadValue(where, `must be "never", or left out.`)
	default:
		return jsonbody.WrongType(where, "a string or an object", v)
	}
}

// masked returns a server's URL without what may be secret in it: user, path, query and fragment.
func masked(address string) string {
	u, err := url.Parse(address)
	if address == "" || err != nil || u.Host == "" {
		return ""
	}
	shown := u.Scheme + "://" + u.Host
	if strings.Trim(u.Path, "/")+u.RawQuery != "" {
		shown += "/<redacted>"
	}
	return shown
}

func labelOf(p *translate.Provider) string {
	if p.Server == "" {
		return strings.TrimPrefix(p.Plugin, "mcp/")
	}
	return p.Server
}

// parseHeaders parses the headers, one of which "authorization" stands for.
func parseHeaders(s *request.MCPServer, m *jsonbody.Reader) (err *translate.Error) {
	where := s.Param
	if s.Headers, err = request.Headers(m.At("headers"), gjson.ParseBytes(m.Get("headers"))); err != nil {
		return err
	}
	token := m.Text("authorization")
	switch {
	case m.Err != nil:
		return m.Err
	case s.URL == "" && (token != "" || len(s.Headers) > 0):
		return translate.BadValue(where,
			`has headers, but no "server_url": a server of mcp.json gets the headers that are configured there.`)
	case token == "":
		return nil
	}
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return translate.Invalid("invalid_value", where+".authorization",
				`"`+where+`" has "authorization" and a header of that name: leave out one of them.`)
		}
	}
	if s.Headers == nil {
		s.Headers = map[string]string{}
	}
	if kind, _, isWhole := strings.Cut(token, " "); !isWhole || !strings.EqualFold(kind, "Bearer") {
		token = "Bearer " + token
	}
	s.Headers["Authorization"] = token
	return nil
}

// parseAllowed parses the tools that may be used: an array of names, or an object with one.
func parseAllowed(s *request.MCPServer, where string, v gjson.Result) (err *translate.Error) {
	if v.IsObject() {
		if v.Get("read_only").Type == gjson.True {
			return translate.Refused("unsupported_parameter", where+".read_only",
				`is not supported: servers need not say which of their tools only read. Name the tools in "tool_names".`)
		}
		where, v = where+".tool_names", v.Get("tool_names")
	}
	if v.Type == gjson.Null {
		return nil
	}
	s.Restricted = true
	s.Allowed, err = request.AllowedTools(where, v)
	return err
}
