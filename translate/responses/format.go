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
	text := body.Value("text")
	if !jsonbody.IsGiven(text) {
		return nil
	}
	b := jsonbody.Read("text", text)
	r.echo.Text.Verbosity = oneOf(b, "verbosity", "low", "medium", "high")
	format := b.Get("format")
	if b.Err != nil || !jsonbody.IsGiven(format) {
		return b.Err
	}
	m := jsonbody.Read(b.At("format"), format)
	switch kind := jsonbody.Unquote(m.Get("type")); {
	case m.Err != nil:
		return m.Err
	case kind == "text", len(jsonbody.ObjectOf(format)) == 0:
		return nil
	case kind == "json_object":
		r.format, r.echo.Text.Format = `{"type":"json_object"}`, json.RawMessage(`{"type":"json_object"}`)
		return nil
	case kind == "json_schema":
		return r.parseSchema(m)
	default:
		return translate.BadValue(m.At("type"), `must be "text", "json_schema" or "json_object".`)
	}
}

// parseSchema parses a format with a schema, which isn't nested as it is in a chat.
func (r *Request) parseSchema(m *jsonbody.Reader) (err *translate.Error) {
	name, description, strict := m.Text("name"), m.Text("description"), m.Bool("strict")
	schema, place := gjson.ParseBytes(m.Get("schema")), m.At("schema")
	switch {
	case m.Err != nil:
		return m.Err
	case schema.Type == gjson.Null:
		return translate.Missing(place)
	case !request.IsSchema(schema):
		return jsonbody.WrongType(place, "an object", schema)
	}
	r.echo.Text.Format = jsonbody.AppendJSON(nil, echoedFormat{"json_schema", name, description, json.RawMessage(schema.Raw), strict})
	r.format, err = r.Chat.Format(schema, place)
	return err
}
