package responses

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

type choiceMode uint8

const (
	choiceAuto choiceMode = iota
	choiceNone
	choiceRequired
)

// toolChoice says which tools the model may call, and whether it must. A call can be required in the first round only: later the
// model answers with its result.
type toolChoice struct {
	mode    choiceMode
	allowed []wantedTool // in every round; nil: all
	first   []wantedTool // in the first round; nil: all
}

type wantedTool struct {
	isMCP  bool
	server string // label of its server, if it is a tool of one
	name   string // empty for all tools of the server
}

type (
	echoedWanted struct {
		Type   string `json:"type"`
		Server string `json:"server_label,omitempty"`
		Name   string `json:"name,omitempty"`
	}
	echoedAllowed struct {
		Type  string         `json:"type"`
		Mode  string         `json:"mode"`
		Tools []echoedWanted `json:"tools"`
	}
)

func (r *Request) parseChoice(body *jsonbody.Body) *translate.Error {
	const name = "tool_choice"
	choice := body.Get(name)
	r.echo.ToolChoice = json.RawMessage(`"auto"`)
	switch {
	case choice.Type == gjson.Null:
		return nil
	case choice.IsObject():
		return r.chooseTools(name, choice)
	case choice.Type != gjson.String:
		return jsonbody.WrongType(name, "a string or an object", choice)
	}
	switch choice.Str {
	case "auto":
	case "none":
		r.choice.mode = choiceNone
	case "required":
		if len(r.Functions)+len(r.Servers) == 0 {
			return badChoice(`is "required", but there are no "tools" to call.`)
		}
		r.choice.mode = choiceRequired
	default:
		return badChoice(`must be "none", "auto", "required", or an object that names tools, not ` + translate.QuoteShort(choice.Str) + `.`)
	}
	r.echo.ToolChoice = json.RawMessage(choice.Raw)
	return nil
}

// chooseTools parses a choice of the form {"type":"function"|"custom","name"}, {"type":"mcp","server_label","name"?} or
// {"type":"allowed_tools","mode","tools"}.
func (r *Request) chooseTools(where string, choice gjson.Result) *translate.Error {
	if kind := choice.Get("type").Str; kind != "allowed_tools" {
		wanted, echoed, err := r.wantedTool(where, choice)
		r.choice.mode, r.choice.first = choiceRequired, []wantedTool{wanted}
		r.echo.ToolChoice = jsonbody.AppendJSON(nil, echoed)
		return err
	}
	mode := choice.Get("mode").Str
	switch mode {
	case "", "auto":
		mode = "auto"
	case "required":
		r.choice.mode = choiceRequired
	default:
		return badChoice(`must have the "mode" "auto" or "required".`)
	}
	allowed := echoedAllowed{Type: "allowed_tools", Mode: mode}
	tools := jsonbody.AtMost(request.MaxTools, choice.Get("tools"))
	if len(tools) > request.MaxTools {
		return badChoice("must hold at most " + strconv.Itoa(request.MaxTools) + " tools.")
	}
	for i, tool := range tools {
		if kind := tool.Get("type").Str; kind != "function" && kind != "custom" && kind != "mcp" && kind != "" {
			continue // it is skipped among the tools as well
		}
		wanted, echoed, err := r.wantedTool(where+".tools["+strconv.Itoa(i)+"]", tool)
		if err != nil {
			return err
		}
		r.choice.allowed = append(r.choice.allowed, wanted)
		allowed.Tools = append(allowed.Tools, echoed)
	}
	if len(allowed.Tools) == 0 {
		return badChoice(`allows no tools: use "none" to have none called.`)
	}
	r.echo.ToolChoice = jsonbody.AppendJSON(nil, allowed)
	return nil
}

// wantedTool parses the reference to a tool or to a server, which must be among the tools.
func (r *Request) wantedTool(where string, v gjson.Result) (w wantedTool, echoed echoedWanted, _ *translate.Error) {
	if !v.IsObject() {
		return w, echoed, jsonbody.WrongType(where, "an object", v)
	}
	w = wantedTool{isMCP: v.Get("type").Str == "mcp", server: v.Get("server_label").Str, name: v.Get("name").Str}
	echoed = echoedWanted{v.Get("type").Str, w.server, w.name}
	if w.isMCP {
		for i := range r.Servers {
			if r.Servers[i].Label == w.server {
				return w, echoed, nil
			}
		}
		return w, echoed, badChoice(`names the MCP server ` + translate.QuoteShort(w.server) + `, which is not among the "tools".`)
	}
	if kind := v.Get("type").Str; kind != "function" && kind != "custom" {
		return w, echoed, badChoice(`must be of the type "function", "custom", "mcp" or "allowed_tools", not ` +
			translate.QuoteShort(kind) + `: this server runs no other tools.`)
	}
	w.server, echoed.Server = "", ""
	w.name = r.knownName(v.Get("namespace").Str, w.name)
	names := make([]string, len(r.Functions))
	for i := range r.Functions {
		if names[i] = r.Functions[i].Name; names[i] == w.name && w.name != "" {
			return w, echoed, nil
		}
	}
	if w.name == "" {
		return w, echoed, badChoice(`must name a function: {"type":"function","name":"…"}.`)
	}
	have := "there are no functions"
	if len(names) > 0 {
		have = "the functions are: " + strings.Join(names, ", ")
	}
	return w, echoed, badChoice(`names the function ` + translate.QuoteShort(w.name) + `, but ` + have + `.`)
}

func badChoice(is string) *translate.Error {
	return translate.BadValue("tool_choice", "%s", is)
}

func (r *Request) offered(tools []request.Tool, first bool) (kept []request.Tool, isForced bool, _ *translate.Error) {
	c := &r.choice
	if c.mode == choiceNone || r.IsProbe {
		return nil, false, nil // an engine would describe them to the model, and leave its calls in the text
	}
	for _, tool := range tools {
		isWanted := func(w wantedTool) bool {
			if w.isMCP {
				return tool.Server == w.server && (w.name == "" || tool.Bare == w.name)
			}
			return tool.Server == "" && tool.Name == w.name
		}
		isAllowed := c.allowed == nil || slices.ContainsFunc(c.allowed, isWanted)
		if isAllowed && (!first || c.first == nil || slices.ContainsFunc(c.first, isWanted)) {
			kept = append(kept, tool)
		}
	}
	if !first {
		return kept, false, nil
	}
	if c.mode == choiceRequired && len(kept) == 0 {
		return nil, false, badChoice(`demands a call, but none of the tools of the MCP servers is allowed and has the name: ` +
			`look at the items of type "mcp_list_tools".`)
	}
	return kept, c.mode == choiceRequired, nil
}

// function is what a client calls a function that the model knows by another name or in another form.
type function struct {
	namespace, name string
	isCustom        bool // it is a custom tool
}

type (
	echoedFunction struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description *string         `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      *bool           `json:"strict"`
	}
	echoedCustom struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description *string         `json:"description,omitempty"`
		Format      json.RawMessage `json:"format,omitempty"`
	}
	echoedNamespace struct {
		Type        string            `json:"type"`
		Name        string            `json:"name"`
		Description string            `json:"description"`
		Tools       []json.RawMessage `json:"tools"`
	}
)

type toolParser struct {
	*Request
	work   schema.Work
	echoed []json.RawMessage
}

// parseTools parses the functions and MCP servers. Tools of other types are skipped: agents offer them to every server.
func (r *Request) parseTools(body *jsonbody.Body) *translate.Error {
	all, err := request.ToolsIn(body.Get("tools"))
	if err != nil {
		return err
	}
	p := &toolParser{Request: r, echoed: []json.RawMessage{}}
	for i, tool := range all {
		where := "tools[" + strconv.Itoa(i) + "]"
		if !tool.IsObject() {
			return jsonbody.WrongType(where, "an object", tool)
		}
		m := jsonbody.Read(where, []byte(tool.Raw))
		kind, err := m.Required("type"), m.Err
		switch kind {
		case "function", "custom":
			var echoed json.RawMessage
			echoed, err = p.function(m, "")
			p.echoed = append(p.echoed, echoed)
		case "namespace":
			err = p.namespace(m)
		case "mcp":
			err = p.server(m)
		}
		if err != nil {
			return err
		}
	}
	r.echo.Tools = jsonbody.AppendJSON(nil, p.echoed)
	return nil
}

// function parses a function or a custom tool. In a Responses request its members aren't nested as they are in a chat.
func (p *toolParser) function(m *jsonbody.Reader, namespace string) (echoed json.RawMessage, _ *translate.Error) {
	name, description := m.Name("name"), m.Text("description")
	switch {
	case m.Err != nil:
		return nil, m.Err
	case len(p.Functions) == request.MaxTools:
		return nil, request.TooManyTools()
	}
	known := function{namespace, name, jsonbody.Unquote(m.Get("type")) == "custom"}
	if known.isCustom {
		return p.custom(known, description, gjson.ParseBytes(m.Get("format")), m.At("format"))
	}
	parameters, place := gjson.ParseBytes(m.Get("parameters")), m.At("parameters")
	if !request.IsSchema(parameters) {
		return nil, jsonbody.WrongType(place, "an object", parameters)
	}
	isStrict := m.Bool("strict")
	if m.Err != nil {
		return nil, m.Err
	}
	made := request.NewTool(p.nameOf(known), description, parameters, place, &p.work)
	made.IsStrict = isStrict
	p.Functions = append(p.Functions, made)
	e := echoedFunction{Type: "function", Name: name, Description: jsonbody.OrNull(description), Parameters: json.RawMessage("null")}
	if parameters.IsObject() {
		e.Parameters = json.RawMessage(parameters.Raw)
	}
	if jsonbody.IsGiven(m.Get("strict")) {
		e.Strict = &isStrict
	}
	return jsonbody.AppendJSON(nil, e), nil
}

// custom parses a tool whose input is a text. To the model it is a function with one argument.
func (p *toolParser) custom(known function, description string, format gjson.Result, place string) (json.RawMessage, *translate.Error) {
	made, err := request.NewCustomTool(p.nameOf(known), description, format, place, &p.work)
	if err != nil {
		return nil, err
	}
	p.Functions = append(p.Functions, made)
	e := echoedCustom{Type: "custom", Name: known.name, Description: jsonbody.OrNull(description)}
	if format.IsObject() {
		e.Format = json.RawMessage(format.Raw)
	}
	return jsonbody.AppendJSON(nil, e), nil
}

// namespace parses a group of functions. The model knows them by names that begin with the namespace's.
func (p *toolParser) namespace(m *jsonbody.Reader) *translate.Error {
	name, description, tools := m.Name("name"), m.Text("description"), m.Get("tools")
	all := jsonbody.ElementsAtMost(request.MaxTools, tools)
	switch {
	case m.Err != nil:
		return m.Err
	case jsonbody.IsGiven(tools) && tools[0] != '[':
		return jsonbody.WrongJSON(m.At("tools"), "an array", tools)
	case len(all) > request.MaxTools:
		return request.TooManyTools()
	}
	echoed := echoedNamespace{"namespace", name, description, []json.RawMessage{}}
	for i, tool := range all {
		of := jsonbody.Read(m.At("tools["+strconv.Itoa(i)+"]"), tool)
		if kind := jsonbody.Unquote(of.Get("type")); of.Err == nil && kind != "function" && kind != "custom" {
			continue
		}
		one, err := p.function(of, name)
		if err != nil {
			return err
		}
		echoed.Tools = append(echoed.Tools, one)
	}
	if len(echoed.Tools) > 0 {
		p.echoed = append(p.echoed, jsonbody.AppendJSON(nil, echoed))
	}
	return nil
}

// nameOf returns the name by which the model knows a function, and notes what it stands for.
func (p *toolParser) nameOf(f function) string {
	known := f.name
	if f.namespace != "" {
		isTaken := func(t request.Tool) bool { return t.Name == known }
		for known = flatName(f.namespace, f.name); slices.ContainsFunc(p.Functions, isTaken); {
			known += "_"
		}
	}
	if f.namespace == "" && !f.isCustom {
		return known
	}
	if p.names == nil {
		p.names = map[string]function{}
	}
	p.names[known] = f
	return known
}

func (r *Request) knownName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	for known, f := range r.names {
		if f.namespace == namespace && f.name == name {
			return known
		}
	}
	return flatName(namespace, name)
}

func flatName(namespace, name string) string {
	return strings.TrimRight(namespace, "_.") + "__" + name
}
