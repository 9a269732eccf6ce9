package responses

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

type (
	echoedText struct {
		Format    json.RawMessage `json:"format"`
		Verbosity string          `json:"verbosity,omitempty"`
	}
	echoedFormat struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"schema"`
		Strict      bool            `json:"strict"`
	}
)

// plainFormat is the format of an answer that may be any text.
var plainFormat = json.RawMessage(`{"type":"text"}`)

func (r *Request) parseText(body *jsonbody.Body) *translate.Error {
	r.echo.Text.Format = plainFormat
	text := body.Get("text")
	switch {
	case text.Type == gjson.Null:
		return nil
	case !text.IsObject():
		return jsonbody.WrongType("text", "an object", text)
	}
	var err *translate.Error
	if r.echo.Text.Verbosity, err = oneOf("text.verbosity", text.Get("verbosity"), "low", "medium", "high"); err != nil {
		return err
	}
	format := text.Get("format")
	switch {
	case format.Type == gjson.Null:
		return nil
	case !format.IsObject():
		return jsonbody.WrongType("text.format", "an object", format)
	case format.Get("type").Type == gjson.Null && len(format.Map()) == 0:
		return nil
	}
	switch kind := format.Get("type"); kind.Str {
	case "text":
	case "json_object":
		r.format, r.echo.Text.Format = `{"type":"json_object"}`, json.RawMessage(`{"type":"json_object"}`)
	case "json_schema":
		return r.parseSchema("text.format", format)
	default:
		return translate.BadValue("text.format.type", `must be "text", "json_schema" or "json_object".`)
	}
	return nil
}

// parseSchema parses a format with a schema, which isn't nested as it is in a chat.
func (r *Request) parseSchema(where string, format gjson.Result) *translate.Error {
	m := jsonbody.Read(where, []byte(format.Raw))
	name, description, strict := m.Text("name"), m.Text("description"), m.Bool("strict")
	schema := format.Get("schema")
	switch {
	case m.Err != nil:
		return m.Err
	case schema.Type == gjson.Null:
		return translate.Missing(where + ".schema")
	case !request.IsSchema(schema):
		return jsonbody.WrongType(where+".schema", "an object", schema)
	}
	r.echo.Text.Format = jsonbody.AppendJSON(nil, echoedFormat{"json_schema", name, description, json.RawMessage(schema.Raw), strict})
	var err *translate.Error
	r.format, err = r.Chat.Format(schema, where+".schema")
	return err
}
