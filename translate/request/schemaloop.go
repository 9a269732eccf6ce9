package request

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// schemaLoops finds references that lead back to themselves for one and the same value. An engine can't make a grammar of them.
// A schema that contains itself as that of a property or an element is fine.
type schemaLoops struct {
	root  gjson.Result
	state map[string]int // of references: 1 while they are followed, 2 afterwards
}

// sameValue are the keywords whose schemas are of the value itself.
var sameValue = []string{"$ref", "anyOf", "oneOf", "allOf", "not", "if", "then", "else"}

// has reports whether a reference leads to a loop.
func (l *schemaLoops) has(ref string) bool {
	switch l.state[ref] {
	case 1:
		return true
	case 2:
		return false
	}
	l.state[ref] = 1
	found := l.in(targetOf(l.root, ref))
	l.state[ref] = 2
	return found
}

// in reports whether a schema leads to a loop.
func (l *schemaLoops) in(schema gjson.Result) (found bool) {
	if !schema.IsObject() {
		return false
	}
	schema.ForEach(func(key, value gjson.Result) bool {
		switch {
		case !slices.Contains(sameValue, key.Str):
		case key.Str == "$ref":
			found = strings.HasPrefix(value.Str, "#/") && l.has(value.Str)
		case value.IsArray():
			found = slices.ContainsFunc(value.Array(), l.in)
		default:
			found = l.in(value)
		}
		return !found
	})
	return found
}
