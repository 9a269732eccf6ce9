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
		kind, err := requiredString(where+".type", tool.Get("type"))
		if err != nil {
			return err
		}
		switch kind {
		case "function", "custom":
			var echoed json.RawMessage
			echoed, err = p.function(where, "", tool)
			p.echoed = append(p.echoed, echoed)
		case "namespace":
			err = p.namespace(where, tool)
		case "mcp":
			err = p.server(where, tool)
		}
		if err != nil {
			return err
		}
	}
	r.echo.Tools = jsonbody.AppendJSON(nil, p.echoed)
	return nil
}

// function parses a function or a custom tool. In a Responses request its members aren't nested as they are in a chat.
func (p *toolParser) function(where, namespace string, tool gjson.Result) (echoed json.RawMessage, _ *translate.Error) {
	name, err := requiredString(where+".name", tool.Get("name"))
	if err != nil {
		return nil, err
	}
	description, err := optionalString(where+".description", tool.Get("description"))
	if err != nil {
		return nil, err
	}
	switch {
	case len(name) > jsonbody.MaxNameLength:
		return nil, request.TooLong(where + ".name")
	case len(p.Functions) == request.MaxTools:
		return nil, request.TooManyTools()
	}
	known := function{namespace, name, tool.Get("type").Str == "custom"}
	if known.isCustom {
		return p.custom(where, known, description, tool.Get("format"))
	}
	parameters, strict := tool.Get("parameters"), tool.Get("strict")
	switch {
	case !request.IsSchema(parameters):
		return nil, jsonbody.WrongType(where+".parameters", "an object", parameters)
	case strict.Type != gjson.Null && !strict.IsBool():
		return nil, jsonbody.WrongType(where+".strict", "a boolean", strict)
	}
	made := request.NewTool(p.nameOf(known), description, parameters, where+".parameters", &p.work)
	made.IsStrict = strict.Bool()
	p.Functions = append(p.Functions, made)
	e := echoedFunction{Type: "function", Name: name, Description: jsonbody.OrNull(description), Parameters: json.RawMessage("null")}
	if parameters.IsObject() {
		e.Parameters = json.RawMessage(parameters.Raw)
	}
	if strict.IsBool() {
		is := strict.Bool()
		e.Strict = &is
	}
	return jsonbody.AppendJSON(nil, e), nil
}

// custom parses a tool whose input is a text. To the model it is a function with one argument.
func (p *toolParser) custom(where string, known function, description string, format gjson.Result) (echoed json.RawMessage, _ *translate.Error) {
	made, err := request.NewCustomTool(p.nameOf(known), description, format, where+".format", &p.work)
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
func (p *toolParser) namespace(where string, group gjson.Result) *translate.Error {
	name, err := requiredString(where+".name", group.Get("name"))
	if err != nil {
		return err
	}
	description, err := optionalString(where+".description", group.Get("description"))
	if err != nil {
		return err
	}
	tools := group.Get("tools")
	all := jsonbody.AtMost(request.MaxTools, tools)
	switch {
	case len(name) > jsonbody.MaxNameLength:
		return request.TooLong(where + ".name")
	case tools.Type != gjson.Null && !tools.IsArray():
		return jsonbody.WrongType(where+".tools", "an array", tools)
	case len(all) > request.MaxTools:
		return request.TooManyTools()
	}
	echoed := echoedNamespace{"namespace", name, description, []json.RawMessage{}}
	for i, tool := range all {
		where := where + ".tools[" + strconv.Itoa(i) + "]"
		switch kind := tool.Get("type").Str; {
		case !tool.IsObject():
			return jsonbody.WrongType(where, "an object", tool)
		case kind != "function" && kind != "custom":
			continue
		}
		one, err := p.function(where, name, tool)
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
