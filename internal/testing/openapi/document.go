// Package openapi checks requests and responses against an OpenAPI 3.1 document. It is for tests.
//
// It is stricter with responses than the document: a response must not have a field that its schema doesn't name. So a field that
// is added to the API is missed in the document.
package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is an OpenAPI document.
type Document struct {
	operations []*Operation
}

// Operation is a method of a path.
type Operation struct {
	Method string
	Path   string // with its parameters in braces
	ID     string
	Scope  string // the extension x-scope

	request   *jsonschema.Schema            // of the body; nil if there is none
	responses map[string]map[string]*schema // by status or "default", and by type of content
}

// schema is the schema of a body; nil if the body isn't JSON.
type schema = jsonschema.Schema

const (
	typeJSON   = "application/json"
	typeEvents = "text/event-stream"
)

// Parse parses a document, and compiles its schemas.
func Parse(text []byte) (*Document, error) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	root, ok := parsed.(map[string]any)
	if !ok || !strings.HasPrefix(fmt.Sprint(root["openapi"]), "3.1.") {
		return nil, errors.New("it isn't an OpenAPI 3.1 document")
	}
	p := &parser{root: root, compiler: jsonschema.NewCompiler()}
	p.compiler.AssertFormat()
	closeResponses(root)
	if err := p.compiler.AddResource(location, root); err != nil {
		return nil, err
	}
	d := new(Document)
	for path, item := range members(root["paths"]) {
		for method, op := range members(item) {
			parsed, err := p.operation(path, method, op.(map[string]any))
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			d.operations = append(d.operations, parsed)
		}
	}
	slices.SortFunc(d.operations, func(a, b *Operation) int { return strings.Compare(a.Path+a.Method, b.Path+b.Method) })
	return d, d.check()
}

// location is where the compiler finds the document.
const location = "file:///openapi.json"

type parser struct {
	root     map[string]any
	compiler *jsonschema.Compiler
}

func (p *parser) operation(path, method string, op map[string]any) (*Operation, error) {
	o := &Operation{Method: strings.ToUpper(method), Path: path, ID: fmt.Sprint(op["operationId"]), Scope: fmt.Sprint(op["x-scope"]), responses: map[string]map[string]*schema{}}
	at := "#/paths/" + escape(path) + "/" + method
	var err error
	if _, has := op["requestBody"]; has {
		if o.request, err = p.compile(at + "/requestBody/content/" + escape(typeJSON) + "/schema"); err != nil {
			return nil, err
		}
	}
	for status, response := range members(op["responses"]) {
		at := at + "/responses/" + status
		if ref, is := members(response)["$ref"].(string); is {
			at, response = ref, p.find(ref)
		}
		o.responses[status] = map[string]*schema{}
		for kind := range members(members(response)["content"]) {
			o.responses[status][kind] = nil
			if kind == typeJSON || kind == typeEvents {
				if o.responses[status][kind], err = p.compile(at + "/content/" + escape(kind) + "/schema"); err != nil {
					return nil, err
				}
			}
		}
	}
	if named := strings.Count(path, "{"); named != len(inPath(op["parameters"])) {
		return nil, fmt.Errorf("the path has %d parameters, and the operation describes %d", named, len(inPath(op["parameters"])))
	}
	return o, nil
}

func (p *parser) compile(pointer string) (*schema, error) {
	return p.compiler.Compile(location + pointer)
}

// find returns what a reference within the document points to, or nil.
func (p *parser) find(ref string) any {
	var at any = p.root
	for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = members(at)[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return at
}

func escape(step string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(step)
}

// members returns the members of an object, none of anything else.
func members(v any) map[string]any {
	object, _ := v.(map[string]any)
	return object
}

// inPath returns the parameters that are in the path.
func inPath(parameters any) (all []any) {
	list, _ := parameters.([]any)
	for _, p := range list {
		if members(p)["in"] == "path" {
			all = append(all, p)
		}
	}
	return all
}

// closeResponses adds to all schemas of responses that an object has no other fields than those named.
func closeResponses(root map[string]any) {
	schemas := members(members(root["components"])["schemas"])
	done := map[string]bool{}
	var visit func(any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				visit(one)
			}
		case map[string]any:
			if ref, is := v["$ref"].(string); is {
				if name, is := strings.CutPrefix(ref, "#/components/schemas/"); is && !done[name] {
					done[name] = true
					visit(schemas[name])
				}
			}
			_, isObject := v["properties"].(map[string]any)
			if _, isOpen := v["additionalProperties"]; isObject && !isOpen {
				v["additionalProperties"] = false
			}
			for _, one := range v {
				visit(one)
			}
		}
	}
	visit(members(root["components"])["responses"])
	for _, item := range members(root["paths"]) {
		for _, op := range members(item) {
			visit(members(op)["responses"])
		}
	}
}

// check returns an error if operations share an id, or have none.
func (d *Document) check() error {
	seen := map[string]bool{}
	for _, o := range d.operations {
		if o.ID == "<nil>" || seen[o.ID] {
			return fmt.Errorf("%s %s: its operationId %s is missing, or not its own", o.Method, o.Path, o.ID)
		}
		seen[o.ID] = true
	}
	return nil
}

// Operations returns all operations, sorted by path.
func (d *Document) Operations() []*Operation { return d.operations }

// Find returns the operation that a request is for, nil if there is none. If several paths fit, the one with the fewest open
// characters counts. A parameter at the end of a path may contain slashes.
func (d *Document) Find(method, path string) *Operation {
	if method == "HEAD" {
		method = "GET"
	}
	var best *Operation
	for _, o := range d.operations {
		if o.Method == method && fits(o.Path, path) && (best == nil || literal(o.Path) > literal(best.Path)) {
			best = o
		}
	}
	return best
}

func fits(template, path string) bool {
	before, rest, open := strings.Cut(template, "{")
	if !open {
		return template == path
	}
	_, after, _ := strings.Cut(rest, "}")
	if !strings.HasPrefix(path, before) || !strings.HasSuffix(path, after) || len(path) <= len(before)+len(after) {
		return false
	}
	return after == "" || !strings.Contains(path[len(before):len(path)-len(after)], "/")
}

// literal is the number of characters of a path outside its parameter.
func literal(template string) int {
	before, rest, _ := strings.Cut(template, "{")
	_, after, _ := strings.Cut(rest, "}")
	return len(before) + len(after)
}

// CheckRequest returns an error if a body, which the server has accepted, isn't as the document says.
func (o *Operation) CheckRequest(body []byte) error {
	if o.request == nil {
		return nil
	}
	return checkJSON(o.request, body)
}

// CheckResponse returns an error if a response isn't as the document says.
func (o *Operation) CheckResponse(status int, contentType string, body []byte) error {
	content, known := o.responses[strconv.Itoa(status)]
	if !known && status >= 400 {
		content, known = o.responses["default"]
	}
	if !known {
		return fmt.Errorf("the status %d isn't described", status)
	}
	contentType, _, _ = strings.Cut(contentType, ";")
	schema, known := content[contentType]
	switch {
	case !known:
		return fmt.Errorf("the type of content %q isn't described; there are %v", contentType, slices.Sorted(maps.Keys(content)))
	case contentType == typeEvents:
		return checkEvents(schema, body)
	case schema == nil || o.Method == http.MethodHead:
		return nil
	default:
		return checkJSON(schema, body)
	}
}

// checkEvents checks the data of each event that is complete.
func checkEvents(s *schema, body []byte) error {
	for {
		event, rest, complete := bytes.Cut(body, []byte("\n\n"))
		if !complete {
			return nil
		}
		body = rest
		name, data := "", ""
		for line := range strings.Lines(string(event)) {
			line = strings.TrimRight(line, "\n")
			if value, is := strings.CutPrefix(line, "event: "); is {
				name = value
			}
			if value, is := strings.CutPrefix(line, "data: "); is {
				data = value
			}
		}
		if name == "" && data == "" {
			continue // a comment
		}
		var typed struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(data), &typed); err != nil || typed.Type != "" && typed.Type != name {
			return fmt.Errorf("the event %q has the data %s", name, data)
		}
		if err := checkJSON(s, []byte(data)); err != nil {
			return fmt.Errorf("the event %s: %w", data, err)
		}
	}
}

func checkJSON(s *schema, text []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.Validate(v)
}
