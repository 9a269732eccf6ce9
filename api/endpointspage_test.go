package api

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// endpointsFile is made by this test with -update, from the OpenAPI document.
const endpointsFile = "../docs/api/endpoints.md"

const endpointsIntro = `# Endpoints of the native API

This page is made from the OpenAPI document ` + "[openapi.json](../../api/openapi.json) (`make reference`)" + `, which the server returns at
` + "`GET /api/v1/openapi.json`" + `. [Native chat](native.md) and [Models](models.md) explain how these endpoints work. A field in bold is always there, or required.
An unknown field of a request is ignored, and one that is ` + "`null`" + ` is absent; an unknown parameter is refused.
`

// endpointsPage writes the page.
type endpointsPage struct {
	strings.Builder
	doc gjson.Result
}

func (p *endpointsPage) write() string {
	p.WriteString(endpointsIntro)
	for _, tag := range p.doc.Get("tags.#.name").Array() {
		fmt.Fprintf(p, "\n## %s: endpoints\n", tag.Str)
		p.doc.Get("paths").ForEach(func(path, methods gjson.Result) bool {
			methods.ForEach(func(method, operation gjson.Result) bool {
				if operation.Get("tags.0").Str == tag.Str {
					p.operation(strings.ToUpper(method.Str)+" "+path.Str, operation)
				}
				return true
			})
			return true
		})
	}
	p.WriteString("\n## Objects\n")
	p.doc.Get("components.schemas").ForEach(func(name, schema gjson.Result) bool {
		fmt.Fprintf(p, "\n### %s\n", name.Str)
		p.object(schema)
		return true
	})
	return p.String()
}

func (p *endpointsPage) operation(title string, op gjson.Result) {
	fmt.Fprintf(p, "\n### %s\n\n%s. %s\n", title, strings.TrimSuffix(op.Get("summary").Str, "."), op.Get("description").Str)
	var rows strings.Builder
	for _, param := range op.Get("parameters").Array() {
		name := inBold(param.Get("name").Str, param.Get("required").Bool())
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", name, p.typeOf(param.Get("schema")), cell(param.Get("description").Str))
	}
	if rows.Len() > 0 {
		fmt.Fprintf(p, "\n| parameter | type | meaning |\n|---|---|---|\n%s", rows.String())
	}
	if body := op.Get(`requestBody.content.application/json.schema`); body.Exists() {
		fmt.Fprintf(p, "\nRequest: %s.\n", p.typeOf(body))
	}
	op.Get("responses").ForEach(func(status, response gjson.Result) bool {
		if status.Str == "default" {
			return true
		}
		fmt.Fprintf(p, "\n%s: %s", status.Str, cell(response.Get("description").Str))
		response.Get("content").ForEach(func(_, content gjson.Result) bool {
			if kind := p.typeOf(content.Get("schema")); strings.HasPrefix(kind, "[") {
				fmt.Fprintf(p, " %s.", kind)
			}
			return true
		})
		p.WriteString("\n")
		return true
	})
}

// object writes what a schema says, and a table of its fields for each of its alternatives.
func (p *endpointsPage) object(schema gjson.Result) {
	if about := schema.Get("description").Str; about != "" {
		fmt.Fprintf(p, "\n%s\n", about)
	}
	for _, alternative := range append(schema.Get("oneOf").Array(), schema.Get("anyOf").Array()...) {
		if alternative.Get("properties").Exists() {
			p.object(alternative)
		} else {
			fmt.Fprintf(p, "\n%s %s\n", p.typeOf(alternative), cell(alternative.Get("description").Str))
		}
	}
	var rows strings.Builder
	p.fields(&rows, "", schema)
	if rows.Len() > 0 {
		fmt.Fprintf(p, "\n| field | type | meaning |\n|---|---|---|\n%s", rows.String())
	}
}

// fields writes a row for each field, and for each field of the objects in it.
func (p *endpointsPage) fields(rows *strings.Builder, within string, schema gjson.Result) {
	required := map[string]bool{}
	for _, name := range schema.Get("required").Array() {
		required[name.Str] = true
	}
	for _, part := range schema.Get("allOf").Array() {
		if ref := p.typeOf(part); strings.HasPrefix(ref, "[") {
			fmt.Fprintf(rows, "| | | all fields of %s |\n", ref)
		}
		p.fields(rows, within, part)
	}
	schema.Get("properties").ForEach(func(name, field gjson.Result) bool {
		title := within + inBold(name.Str, required[name.Str])
		fmt.Fprintf(rows, "| %s | %s | %s |\n", title, p.typeOf(field), cell(field.Get("description").Str))
		inner := within + "`" + name.Str + "` › "
		p.fields(rows, inner, field)
		p.fields(rows, inner, field.Get("items"))
		for _, alternative := range field.Get("oneOf").Array() {
			p.fields(rows, inner, alternative)
		}
		return true
	})
}

// typeOf describes a schema in the words of a cell.
func (p *endpointsPage) typeOf(schema gjson.Result) string {
	if _, name, isRef := strings.Cut(schema.Get(`\$ref`).Str, "schemas/"); isRef {
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	if value := schema.Get("const"); value.Exists() {
		return "`" + value.String() + "`"
	}
	var kinds []string
	for _, value := range schema.Get("enum").Array() {
		kinds = append(kinds, "`"+value.String()+"`")
	}
	for _, alternative := range append(schema.Get("oneOf").Array(), schema.Get("anyOf").Array()...) {
		kinds = append(kinds, p.typeOf(alternative))
	}
	if len(kinds) == 0 {
		for _, kind := range schema.Get("type").Array() {
			if kind.Str == "array" {
				kinds = append(kinds, "array of "+cmp.Or(p.typeOf(schema.Get("items")), "values"))
			} else if kind.Str != "null" || !schema.Get("minimum").Exists() {
				kinds = append(kinds, kind.Str)
			}
		}
	}
	text := strings.Join(kinds, ", ")
	if low, high := schema.Get("minimum"), schema.Get("maximum"); low.Exists() && high.Exists() {
		text += fmt.Sprintf(", %s to %s", low.Raw, high.Raw)
	}
	if value := schema.Get("default"); value.Exists() {
		text += "; default `" + value.Raw + "`"
	}
	return text
}

func inBold(name string, isRequired bool) string {
	if isRequired {
		return "**`" + name + "`**"
	}
	return "`" + name + "`"
}

// cell makes a text one that a table can have.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", `\<`).Replace(text)
}

// The page about the endpoints is as the OpenAPI document says.
func TestEndpoints_AreAsDocumented(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	p := endpointsPage{doc: gjson.ParseBytes(document)}
	testkit.Golden(t, endpointsFile, []byte(p.write()))
}
