package schema

import (
	"slices"

	"github.com/tidwall/gjson"
)

// Typed returns a schema that [Offer] has made as one with a single type for each property.
func Typed(offered gjson.Result) string {
	r := reader{left: maxValues + 1}
	n := r.read(offered, maxDepth)
	n.typed(false)
	return n.String()
}

// typed gives a schema and those in it a single type. A property has to have one.
func (n *node) typed(isProperty bool) {
	if !n.isObject() {
		return
	}
	if kind := n.get("type"); kind != nil {
		n.set("type", firstKind(kind))
	} else if isProperty {
		n.names, n.values = slices.Insert(n.names, 0, "type"), slices.Insert(n.values, 0, n.kindWithin())
	}
	for i, name := range n.names {
		switch value := n.values[i]; name {
		case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions":
			for _, inner := range value.values {
				inner.typed(name == "properties")
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			for _, inner := range value.values {
				inner.typed(false)
			}
		case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames":
			value.typed(false)
		}
	}
}

// firstKind returns the first of the types that a schema names, but for null.
func firstKind(kinds *node) *node {
	for _, kind := range asList(kinds) {
		if kind.kind == 's' && (kind.text != "null" || !kinds.isList()) {
			return kind
		}
	}
	return str("string")
}

// kindWithin returns the type of the first alternative, or value, of a schema that names no type itself.
func (n *node) kindWithin() *node {
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		if alternatives := n.get(name); alternatives != nil {
			for _, one := range alternatives.values {
				if kind := one.get("type"); kind != nil && kind.text != "null" {
					return firstKind(kind)
				}
			}
		}
	}
	values := n.get("enum")
	switch {
	case values != nil && len(values.values) > 0 && values.values[0].isNumber():
		return str("number")
	case n.has("properties"), n.has("$ref"):
		return str("object")
	default:
		return str("string")
	}
}
