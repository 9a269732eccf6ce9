package schema

import (
	"slices"
	"strings"
)

// merge returns a schema that a value matches if it matches both. What can't be said in one is noted to be checked.
func (g *grammar) merge(a, b *node, at string) *node {
	if a == never || b == never {
		return never
	}
	g.isRewritten = true
	if g.rules += len(b.names); g.rules > maxWork {
		g.isTooLarge = true
		return a
	}
	out := a.without("$defs", "definitions")
	closedBy(out, a, b)
	for i, name := range b.names {
		value := b.values[i]
		have := out.get(name)
		switch {
		case name == "$defs", name == "definitions":
		case name == "properties" && have != nil:
			out.set(name, g.mergedProperties(have, value))
		case have == nil:
			out.set(name, value)
		case !slices.Contains(restricting, name) || same(have, value):
		default:
			both := g.both(name, have, value, at)
			if both == nil {
				return never
			}
			out.set(name, both)
		}
	}
	if fits := valuesThatFit(out); fits != nil && len(fits.values) == 0 {
		return never
	}
	return out
}

func closedBy(out, a, b *node) {
	forbid := func(closed, other *node) {
		if !closed.get("additionalProperties").isFalse() || closed.has("patternProperties") || !other.has("properties") {
			return
		}
		kept := object()
		if have := out.get("properties"); have != nil {
			kept = have.without()
		}
		for _, name := range other.get("properties").names {
			if !closed.get("properties").has(name) {
				kept.set(name, never)
			}
		}
		out.set("properties", kept)
	}
	forbid(a, b)
	forbid(b, a)
}

func (g *grammar) mergedProperties(a, b *node) *node {
	g.rules += len(b.names)
	out := a.without()
	for i, name := range b.names {
		have, value := out.get(name), b.values[i]
		switch {
		case have == nil:
			out.set(name, value)
		case have == never || value == never:
			out.set(name, never)
		case !same(have, value):
			out.set(name, object().set("allOf", list(have, value)))
		}
	}
	return out
}

func (g *grammar) both(name string, a, b *node, at string) *node {
	switch name {
	case "type":
		kinds := common(asList(a), asList(b))
		switch len(kinds) {
		case 0:
			return nil
		case 1:
			return kinds[0]
		default:
			return list(kinds...)
		}
	case "required":
		all := slices.Clone(a.values)
		for _, one := range b.values {
			if !slices.ContainsFunc(all, func(r *node) bool { return r.text == one.text }) {
				all = append(all, one)
			}
		}
		return list(all...)
	case "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains":
		if b.num > a.num {
			return b
		}
		return a
	case "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains":
		if b.num < a.num {
			return b
		}
		return a
	case "enum":
		values := intersection(a.values, b.values)
		if len(values) == 0 {
			return nil
		}
		return list(values...)
	case "const":
		return nil // they differ
	case "additionalProperties", "items":
		if a == never || b == never {
			return never
		}
		return object().set("allOf", list(a, b))
	case "allOf":
		return list(append(slices.Clip(a.values), b.values...)...)
	default:
		g.check(pointer(at, name))
		return a
	}
}

func asList(n *node) []*node {
	if n.isList() {
		return n.values
	}
	return []*node{n}
}

// common returns the types that two lists have in common. An integer is a number.
func common(a, b []*node) (kinds []*node) {
	has := func(kinds []*node, word string) bool {
		return slices.ContainsFunc(kinds, func(k *node) bool { return k.text == word })
	}
	for _, kind := range a {
		if has(b, kind.text) || kind.text == "integer" && has(b, "number") {
			kinds = append(kinds, kind)
		}
	}
	for _, kind := range b {
		if kind.text == "integer" && has(a, "number") && !has(a, "integer") {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func intersection(a, b []*node) (values []*node) {
	for _, value := range a {
		if slices.ContainsFunc(b, func(other *node) bool { return same(value, other) }) {
			values = append(values, value)
		}
	}
	return values
}

// valuesThatFit returns the values of a schema that has a list of them, as far as they have its types; nil if it has no list.
func valuesThatFit(n *node) *node {
	values := valuesOf(n)
	if values == nil {
		return nil
	}
	if n.has("const") && n.has("enum") {
		values = intersection(values, n.get("enum").values)
	}
	kinds := kindsOf(n)
	fits := list()
	for _, value := range values {
		if len(kinds) == 0 || slices.ContainsFunc(kinds, func(k *node) bool { return isOf(value, k.text) }) {
			fits.values = append(fits.values, value)
		}
	}
	return fits
}

func isOf(value *node, kind string) bool {
	if kind == "integer" && value.num != float64(int64(value.num)) {
		return false
	}
	return strings.IndexByte(nodesOf[kind], value.kind) >= 0
}

// nodesOf are the kinds of nodes of each type.
var nodesOf = map[string]string{
	"object": "{", "array": "[", "string": "s", "number": "n", "integer": "n", "boolean": "tf", "null": "0",
}
