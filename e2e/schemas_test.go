package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var updateSchemas = flag.Bool("update-schemas", false, "write the table of docs/api/schemas.md")

// schemasPage has the table of the keywords, between these marks.
var (
	schemasPage = filepath.FromSlash("../docs/api/schemas.md")
	schemaTable = regexp.MustCompile(`(?s)(<!-- keywords -->\n).*(<!-- end of keywords -->\n)`)
)

// schemaRow is a keyword with an example of it, which is the schema of the property a. Where the engine isn't held to a keyword, but the finished answer is
// checked, the example contradicts itself, so that whatever the model says is found to be wrong.
type schemaRow struct{ keyword, example string }

var schemaRows = []schemaRow{
	{"`true`", `{"const":1,"allOf":[true]}`},
	{"`false`", `false`},
	{"`type`", `{"type":"null"}`},
	{"`type`, an array", `{"type":["boolean","null"]}`},
	{"`type` in capital letters", `{"type":"BOOLEAN"}`},
	{"`type` `any`", `{"type":"any","enum":["x"]}`},
	{"`type`, an unknown one", `{"type":"file"}`},
	{"`type`, an empty array", `{"type":[]}`},
	{"`nullable`", `{"type":"boolean","nullable":true}`},
	{"`enum`", `{"enum":["x",null,1.5]}`},
	{"`enum`, empty", `{"enum":[]}`},
	{"`const`", `{"const":{"b":[1]}}`},
	{"`anyOf`", `{"anyOf":[{"const":1},{"const":"x"}]}`},
	{"`anyOf` beside others", `{"type":"object","properties":{"b":{"const":1}},"anyOf":[{"required":["b"]},{"required":["c"],"properties":{"c":{"const":2}}}]}`},
	{"`oneOf`, of which no two match", `{"oneOf":[{"const":1},{"const":"x"}]}`},
	{"`oneOf`", `{"oneOf":[{"const":1},{"enum":[1]}]}`},
	{"`allOf`", `{"allOf":[{"type":"object","properties":{"b":{"const":1}},"required":["b"]},{"properties":{"c":{"const":2}},"required":["c"]}]}`},
	{"`not`", `{"const":1,"not":{"const":1}}`},
	{"`if`, `then`, `else`", `{"const":1,"if":{"const":1},"then":false}`},
	{"`properties`", `{"properties":{"b":{"const":1}},"required":["b"]}`},
	{"`required` of what isn't named", `{"type":"object","required":["b"],"additionalProperties":{"const":1}}`},
	{"`additionalProperties`", `{"type":"object","additionalProperties":{"type":"null"},"required":["b"]}`},
	{"`patternProperties`", `{"properties":{"b":{"const":1}},"required":["b"],"patternProperties":{"^b":{"const":2}}}`},
	{"`propertyNames`", `{"properties":{"bb":{"const":1}},"required":["bb"],"propertyNames":{"maxLength":1}}`},
	{"`minProperties`", `{"properties":{"b":{"const":1}},"required":["b"],"minProperties":2}`},
	{"`maxProperties`", `{"properties":{"b":{"const":1},"c":{"const":1}},"required":["b","c"],"maxProperties":1}`},
	{"`dependentRequired`", `{"properties":{"b":{"const":1}},"required":["b"],"dependentRequired":{"b":["c"]}}`},
	{"`dependentSchemas`", `{"properties":{"b":{"const":1}},"required":["b"],"dependentSchemas":{"b":false}}`},
	{"`unevaluatedProperties`", `{"type":"object","required":["b"],"unevaluatedProperties":false}`},
	{"`items`", `{"type":"array","items":{"const":1},"minItems":1,"maxItems":2}`},
	{"`items`, a boolean", `{"type":"array","items":false}`},
	{"`items`, an array", `{"type":"array","items":[{"const":1},{"const":"x"}],"minItems":2}`},
	{"`prefixItems`", `{"type":"array","prefixItems":[{"const":1}],"items":{"const":2},"minItems":2}`},
	{"`minItems`, `maxItems`", `{"type":"array","items":{"type":"null"},"minItems":2,"maxItems":3}`},
	{"`maxItems` 0", `{"type":"array","items":{"type":"null"},"maxItems":0}`},
	{"`minItems` above `maxItems`", `{"type":"array","minItems":3,"maxItems":2}`},
	{"`uniqueItems`", `{"type":"array","items":{"const":1},"minItems":2,"maxItems":2,"uniqueItems":true}`},
	{"`contains`", `{"type":"array","items":{"const":1},"contains":{"const":2}}`},
	{"`pattern`", `{"type":"string","pattern":"^\\d{3}-\\w$"}`},
	{"`pattern` that looks ahead", `{"enum":["b"],"pattern":"^(?!b)"}`},
	{"`pattern` that is none", `{"type":"string","pattern":"("}`},
	{"`minLength`, `maxLength`", `{"type":"string","minLength":2,"maxLength":3}`},
	{"`minLength` above `maxLength`", `{"type":"string","minLength":3,"maxLength":2}`},
	{"`maxLength` with `pattern`", `{"type":"string","pattern":"^xxx$","maxLength":2}`},
	{"`format` `date`, `time`, `date-time`, `uuid`", `{"type":"string","format":"date"}`},
	{"`minimum`, `maximum` of integers", `{"type":"integer","minimum":100,"exclusiveMaximum":103}`},
	{"`minimum` of integers, beyond 2⁵³", `{"type":"integer","minimum":1e17}`},
	{"`maximum` of integers, of any size", `{"type":"integer","minimum":7,"maximum":1e300}`},
	{"`minimum`, `maximum` of numbers", `{"type":"number","minimum":0.7,"exclusiveMaximum":0.7}`},
	{"`multipleOf`", `{"type":"integer","minimum":6,"maximum":7,"multipleOf":5}`},
	{"`$ref`", `{"$ref":"#/$defs/d"}`},
	{"`$ref` with `~1` or `%5B`", `{"$ref":"#/$defs/e~1%5B"}`},
	{"`$ref` beside others", `{"$ref":"#/$defs/d","enum":["y","z"]}`},
	{"`$ref` to `#`", `{"anyOf":[{"type":"null"},{"$ref":"#"}]}`},
	{"`$ref` to itself", `{"$ref":"#/properties/a"}`},
	{"`$ref` to another document", `{"$ref":"https://example.org/schema"}`},
	{"a wrong value, such as `minLength` `\"1\"`", `{"minLength":"1"}`},
}

// schema is that of an object with the property a.
func (r schemaRow) schema() string {
	return `{"type":"object","properties":{"a":` + r.example + `},"required":["a"],"$defs":{"d":{"enum":["x","y"]},"e/[":{"const":"x"}}}`
}

// schemaPlace is a place of a request that has a schema. answer is where what has to match it is in the reply; empty for one that is only offered.
type schemaPlace struct {
	name, path string
	fields     func(schema any) harness.Fields
	answer     string
}

type raw string

// MarshalJSON returns the text.
func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

var schemaPlaces = []schemaPlace{
	{"tool", harness.ChatPath, func(s any) harness.Fields { return harness.Fields{"tools": []any{functionOf(s)}} }, ""},
	{"required call", harness.ChatPath, func(s any) harness.Fields {
		return harness.Fields{"tools": []any{functionOf(s)}, "tool_choice": "required"}
	}, "choices.0.message.tool_calls.0.function.arguments"},
	{"`response_format`", harness.ChatPath, func(s any) harness.Fields {
		return harness.Fields{"response_format": harness.Fields{"type": "json_schema", "json_schema": harness.Fields{"name": "f", "schema": s}}}
	}, "choices.0.message.content"},
	{"Messages: tool `any`", "/v1/messages", func(s any) harness.Fields {
		return harness.Fields{"tools": []any{harness.Fields{"name": "f", "input_schema": s}}, "tool_choice": harness.Fields{"type": "any"}}
	}, `content.#(type=="tool_use").input`},
	{"Messages: format", "/v1/messages", func(s any) harness.Fields {
		return harness.Fields{"output_config": harness.Fields{"format": harness.Fields{"type": "json_schema", "schema": s}}}
	}, `content.#(type=="text").text`},
	{"Responses: required", "/v1/responses", func(s any) harness.Fields {
		return harness.Fields{"tools": []any{harness.Fields{"type": "function", "name": "f", "parameters": s}}, "tool_choice": "required"}
	}, `output.#(type=="function_call").arguments`},
	{"Responses: format", "/v1/responses", func(s any) harness.Fields {
		return harness.Fields{"text": harness.Fields{"format": harness.Fields{"type": "json_schema", "name": "f", "schema": s}}}
	}, `output.#(type=="message").content.0.text`},
	{"Ollama: `format`", "/api/chat", func(s any) harness.Fields { return harness.Fields{"format": s} }, "message.content"},
}

func functionOf(schema any) harness.Fields {
	return harness.Fields{"type": "function", "function": harness.Fields{"name": "f", "parameters": schema}}
}

// TestSchemas_AreHeldCheckedOrRefused: what becomes of each keyword in each place, by the answers of the engine, is what docs/api/schemas.md says.
func TestSchemas_AreHeldCheckedOrRefused(t *testing.T) {
	t.Parallel()
	var tools []harness.MCPTool
	for i, row := range schemaRows {
		tools = append(tools, harness.MCPTool{Name: fmt.Sprintf("t%d", i), Schema: row.schema(), Run: harness.Says("ok")})
	}
	m := harness.StartMCP(t, tools...)
	s := harness.Start(harness.NewHome(t), harness.Config{LM: []string{"allow ephemeral_mcp", "mcp_private_hosts 127.0.0.1"}})
	s.Post("/api/v1/chat", harness.Fields{"model": harness.Model, "input": "Hello", "max_output_tokens": 1, "integrations": []any{m.Ephemeral("s")}}).Want(t, 200)
	var table strings.Builder
	head, line := "| keyword | tool of an MCP server |", "|---|---|"
	for _, place := range schemaPlaces {
		head, line = head+" "+place.name+" |", line+"---|"
	}
	fmt.Fprintf(&table, "%s\n%s\n", head, line)
	for _, row := range schemaRows {
		fmt.Fprintf(&table, "| %s | offered |", row.keyword)
		for _, place := range schemaPlaces {
			fmt.Fprintf(&table, " %s |", place.outcome(t, s, row))
		}
		table.WriteString("\n")
	}
	page, err := os.ReadFile(schemasPage)
	if err != nil {
		t.Fatal(err)
	}
	made := schemaTable.ReplaceAll(page, []byte("${1}\n"+strings.ReplaceAll(table.String(), "$", "$$")+"\n${2}"))
	if *updateSchemas {
		if err := os.WriteFile(schemasPage, made, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(page), string(made)); diff != "" {
		t.Errorf("docs/api/schemas.md isn't what happens (-page +happens); -update-schemas writes it:\n%s", diff)
	}
}

// outcome returns what becomes of a row's keyword.
func (p schemaPlace) outcome(t *testing.T, s *harness.Server, row schemaRow) string {
	t.Helper()
	request := p.fields(raw(row.schema()))
	request["model"], request["temperature"], request["seed"], request["max_tokens"] = harness.Model, 1, 1, 200
	switch said := []harness.Fields{{"role": "user", "content": "Hello"}}; p.path {
	case "/v1/responses":
		request["input"], request["store"], request["max_output_tokens"], request["reasoning"] = "Hello", false, 200, harness.Fields{"effort": "none"}
		delete(request, "max_tokens")
	case "/api/chat":
		request["think"] = false
		request["messages"], request["stream"], request["options"] = said, false, harness.Fields{"seed": 1, "temperature": 1, "num_predict": 200}
	case harness.ChatPath:
		request["reasoning_effort"] = "none"
		fallthrough
	default:
		request["messages"] = said
	}
	if p.answer == "" {
		request["max_tokens"] = 1
	}
	r := s.In(t).Post(p.path, request)
	says := r.Get("error.message").Str + r.Get("error").Str
	switch {
	case r.Status == 200 && p.answer == "":
		return "offered"
	case r.Status == 400 && strings.Contains(says, "#/properties/a"):
		return "refused"
	case r.Status == 502 && strings.Contains(says, "doesn't match the schema"):
		return "checked"
	case r.Status != 200:
		t.Errorf("%s, %s: %s", p.name, row.keyword, r.Body)
		return "?"
	}
	answer := r.Get(p.answer)
	text := answer.Str
	if answer.IsObject() {
		text = answer.Raw
	}
	if !matches(t, row.schema(), text) {
		t.Errorf("%s, %s: %s", p.name, row.keyword, r.Body)
		return "?"
	}
	return "held"
}

// ourWords are the words of other kinds of schemas that stand for the same as one of JSON Schema.
var ourWords = strings.NewReplacer(`"BOOLEAN"`, `"boolean"`, `"type":"any",`, ``, `"type":"boolean","nullable":true`, `"type":["boolean","null"]`,
	`"items":[{"const":1},{"const":"x"}]`, `"prefixItems":[{"const":1},{"const":"x"}]`)

// matches reports whether a text is JSON that matches a schema.
func matches(t *testing.T, schema, text string) bool {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(ourWords.Replace(schema)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	return err == nil && compiled.Validate(value) == nil
}
