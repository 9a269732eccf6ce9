package request

import (
	"slices"

	"github.com/tidwall/gjson"
)

// MaxTools is the maximum number of tools in a request.
const MaxTools = 1024

// Tool is a tool of a request.
type Tool struct {
	Name       string
	Definition string // as JSON, with the known fields only
	Parameters string // schema of its arguments; empty if unknown
}

// IsOfObjects reports whether a schema of this type allows objects, as the schema of arguments must.
func IsOfObjects(kind gjson.Result) bool {
	if !kind.IsArray() {
		return kind.Type == gjson.Null || kind.Str == "object"
	}
	return slices.ContainsFunc(kind.Array(), func(one gjson.Result) bool { return one.Str == "object" })
}
