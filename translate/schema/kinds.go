package schema

import (
	"math"
	"slices"
	"strconv"
)

// keywordsOf are the keywords that restrict values of a type.
var keywordsOf = map[string][]string{
	"object": {
		"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties",
		"dependentRequired",
	},
	"array":   {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"},
	"string":  {"pattern", "minLength", "maxLength", "format"},
	"number":  {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
	"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}

func (g *grammar) plain(n *node, at string) *node {
	if fits := valuesThatFit(n); fits != nil {
		for _, name := range says(n, "const", "enum", "type") {
			g.check(pointer(at, name))
		}
		g.rules += len(fits.values)
		g.isTooLarge = g.isTooLarge || len(fits.values) > maxMembers
		switch len(fits.values) {
		case 0:
			return never
		case 1:
			return object().set("const", fits.values[0])
		default:
			return object().set("enum", fits)
		}
	}
	kinds := []string{}
	for _, kind := range kindsOf(n) {
		kinds = append(kinds, kind.text)
	}
	if len(kinds) == 0 { // the values that it is about
		isAbout := func(kind string) bool { return slices.ContainsFunc(keywordsOf[kind], n.has) }
		kinds = slices.DeleteFunc([]string{"object", "array", "string", "number"}, func(kind string) bool { return !isAbout(kind) })
	}
	out := list()
	for _, kind := range kinds {
		var made *node
		switch kind {
		case "object":
			made = g.object(n, at)
		case "array":
			made = g.array(n, at)
		case "string":
			made = g.text(n, at)
		case "integer":
			made = g.integer(n, at)
		default:
			made = object().set("type", str(kind))
			for _, name := range keywordsOf[kind] { // for other servers; the engine takes no heed of them
				if value := n.get(name); value != nil {
					g.check(pointer(at, name))
					made.set(name, value)
				}
			}
		}
		if made != never {
			out.values = append(out.values, made)
		}
	}
	switch {
	case len(kinds) == 0:
		return object()
	case len(out.values) == 0:
		return never
	case len(out.values) == 1:
		return out.values[0]
	default:
		return object().set("anyOf", out)
	}
}

// Each format has a pattern, or one of its own in the engine. All other formats are annotations, as JSON Schema has it.
var engineFormats = map[string]bool{"date": true, "time": true, "date-time": true, "uuid": true}

func (g *grammar) text(n *node, at string) *node {
	out := object().set("type", str("string"))
	if pattern := n.get("pattern"); pattern != nil {
		g.checkAll(n, at, "minLength", "maxLength")
		engine, ok := enginePattern(pattern.text)
		switch {
		case !ok:
			g.check(pointer(at, "pattern"))
			return out
		case engine == "^$":
			return object().set("const", str(""))
		default:
			return out.set("pattern", str(engine))
		}
	}
	if format := n.get("format"); format != nil && engineFormats[format.text] {
		g.checkAll(n, at, "minLength", "maxLength")
		return out.set("format", format)
	}
	for _, name := range []string{"minLength", "maxLength"} {
		switch value := n.get(name); {
		case value == nil:
		case name == "minLength" && value.num > maxLeast:
			g.check(pointer(at, name))
		default:
			out.set(name, value)
		}
	}
	if out.get("maxLength").isNumber() && out.get("maxLength").num == 0 {
		return object().set("const", str(""))
	}
	return out
}

// Bounds of integers in grammars. A lower bound alone is one of the number's first digits only, so each has both.
const (
	lowest  = -highest
	highest = 1<<53 - 1
)

func (g *grammar) integer(n *node, at string) *node {
	g.checkAll(n, at, "multipleOf")
	out := object().set("type", str("integer"))
	low, high := float64(lowest), float64(highest)
	isBound := false
	for name, round := range map[string]func(float64) float64{
		"minimum": math.Ceil, "exclusiveMinimum": func(v float64) float64 { return math.Floor(v) + 1 },
		"maximum": math.Floor, "exclusiveMaximum": func(v float64) float64 { return math.Ceil(v) - 1 },
	} {
		switch value := n.get(name); {
		case value == nil:
			continue
		case name == "minimum" || name == "exclusiveMinimum":
			low = max(low, round(value.num))
		default:
			high = min(high, round(value.num))
		}
		isBound = true
	}
	switch {
	case !isBound:
		return out
	case low > high:
		g.tidy.fail(at, "has bounds that no integer is between from -2^53+1 to 2^53-1")
		return never
	case low == high:
		return object().set("const", number(strconv.FormatInt(int64(low), 10)))
	}
	g.isRewritten = true
	return out.set("minimum", number(strconv.FormatInt(int64(low), 10))).set("maximum", number(strconv.FormatInt(int64(high), 10)))
}
