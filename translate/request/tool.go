package request

import (
	"slices"

	"github.com/tidwall/gjson"
)

// MaxTools bounds the tools of one request.
const MaxTools = 1024

// Tool is a tool of a request.
type Tool struct {
	Name       string
	Definition string // what is known of it
	Parameters string // the schema of its arguments; empty: none is known
}

// IsOfObjects tells whether a schema of that type is one of arguments, which are an object.
func IsOfObjects(kind gjson.Result) bool {
	if !kind.IsArray() {
		return kind.Type == gjson.Null || kind.Str == "object"
	}
	return slices.ContainsFunc(kind.Array(), func(one gjson.Result) bool { return one.Str == "object" })
}
