package request

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// A client may require a call. With tool_choice "required" engines let the model write anything before the call, and a weak
// model never gets to it. So the answer must match a schema instead: an object with the name of a tool and its arguments.
// That answer is then decoded to a call.
//
// A client may also offer tools and want an answer in a format. llama-server can't look for calls in such an answer: depending on the
// template it makes none, ignores the format, or fails. So its answer must match either the format or the schema of a call.

// Limits of an answer that must be a call, if the request sets none. A weak model goes on for the whole context if its
// schema allows that.
const (
	MaxForcedTokens = 16384 // of the whole answer, including reasoning
	MaxCallTokens   = 4096  // of the call
)

// Either is an answer that is a call of a tool, or else in the client's format.
type Either struct {
	Format string   // the response_format that allows both
	Tools  []string // names
}

// NewEither returns the answer of a chat that offers tools and has a response_format; nil if it lacks one of them.
func NewEither(tools []Tool, format string) *Either {
	if len(tools) == 0 || format == "" {
		return nil
	}
	f := gjson.Parse(format)
	schema := f.Get("json_schema.schema")
	if !schema.Exists() {
		schema = f.Get("schema")
	}
	if !schema.Exists() {
		schema = gjson.Parse(`{"type":"object"}`)
	}
	e := &Either{Format: callFormat(tools, schema)}
	for _, tool := range tools {
		e.Tools = append(e.Tools, tool.Name)
	}
	return e
}

// ForcedFormat returns the response_format of an answer that must be a call of one of the tools. References in their schemas
// are adjusted to the position of the schemas in it.
func ForcedFormat(tools []Tool) string { return callFormat(tools, gjson.Result{}) }

// callFormat returns the response_format of an answer that must be a call, or match the schema of another answer if there is one.
func callFormat(tools []Tool, answer gjson.Result) string {
	calls := []byte{'['}
	schemas := []byte{'{'}
	for i, tool := range tools {
		key := "t" + strconv.Itoa(i)
		calls = append(jsonbody.AppendComma(calls), `{"type":"object","properties":{"name":{"const":`...)
		calls = append(jsonbody.AppendString(calls, tool.Name), `},"arguments":{"$ref":"#/$defs/`...)
		calls = append(append(calls, key...), `"}},"required":["name","arguments"],"additionalProperties":false}`...)
		schemas = append(append(append(jsonbody.AppendComma(schemas), '"'), key...), `":`...)
		schemas = append(schemas, argumentsSchema(tool.Parameters, "#/$defs/"+key)...)
	}
	if answer.Exists() {
		calls = append(jsonbody.AppendComma(calls), `{"$ref":"#/$defs/answer"}`...)
		schemas = append(jsonbody.AppendComma(schemas), `"answer":`...)
		schemas = schemaEdit{place: "#/$defs/answer"}.append(schemas, answer)
	}
	return `{"type":"json_schema","json_schema":{"schema":{"anyOf":` + string(calls) + `],"$defs":` + string(schemas) + `}}}}`
}

// argumentsSchema returns the schema of a tool's arguments for a place in another schema. A tool without a schema has no
// arguments.
func argumentsSchema(parameters, place string) string {
	const nothing = `{"type":"object","properties":{},"additionalProperties":false}`
	v := gjson.Parse(parameters)
	says := false // has keywords besides those of any object
	v.ForEach(func(key, _ gjson.Result) bool {
		switch key.Str {
		case "type", "title", "description", "required", "$schema", "$id", "strict":
		case "additionalProperties":
			says = says || v.Get(key.Str).Type != gjson.False
		default:
			says = true
		}
		return !says
	})
	if !says {
		return nothing
	}
	return string(schemaEdit{place: place}.append(nil, v))
}
