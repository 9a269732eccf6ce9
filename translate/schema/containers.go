package schema

import (
	"cmp"
	"strconv"
)

// maxLeast is how often something can have to be repeated in a grammar.
const maxLeast = 1000

// maxUnrolled is how many elements an array may have in a grammar that says each of them.
const maxUnrolled = 256

func (g *grammar) object(n *node, at string) *node {
	g.checkAll(n, at, "patternProperties", "propertyNames", "dependentRequired")
	extra := g.extra(n, at)
	named := namedProperties{g, n, at, extra != nil, object(), list(), 0}
	if !named.writeAll() {
		return never
	}
	g.bounds(n, at, len(named.required.values), named.optional, extra != nil)
	if g.rules += named.optional * named.optional / 2; len(named.written.names) > maxFields {
		g.isTooLarge = true
	}
	out := object().set("type", str("object"))
	if n.has("properties") || len(named.written.names) > 0 || extra == nil {
		out.set("properties", named.written)
	}
	if len(named.required.values) > 0 {
		out.set("required", named.required)
	}
	switch {
	case extra != nil && len(extra.names) == 0 && !out.has("properties"):
		return out // as without the keyword
	case extra == nil, !areExcludable(named.written): // the latter leaves less than the schema allows
		return out.set("additionalProperties", never)
	default:
		return out.set("additionalProperties", extra)
	}
}

type namedProperties struct {
	*grammar
	of       *node
	at       string
	hasExtra bool
	written  *node
	required *node // names
	optional int   // their number
}

// writeAll writes the properties, and those that are required only. It reports whether an object can have all that it must.
func (p *namedProperties) writeAll() bool {
	given, names := p.of.get("properties"), p.of.get("required")
	if given != nil && len(given.names) > maxFields || names != nil && len(names.values) > maxFields {
		p.isTooLarge = true
		return true
	}
	if given != nil {
		for i, name := range given.names {
			if !p.write(name, given.values[i]) {
				return false
			}
		}
	}
	if names == nil {
		return true
	}
	value := p.of.get("additionalProperties")
	if value == nil || p.of.has("patternProperties") {
		value = object()
	}
	for _, name := range names.values {
		if given.has(name.text) || p.written.has(name.text) {
			continue
		}
		if p.isRewritten = true; !p.write(name.text, value) {
			return false
		}
	}
	return true
}

// write writes a property. It reports false if the property must be there, but can't.
func (p *namedProperties) write(name string, value *node) bool {
	at := pointer(pointer(p.at, "properties"), name)
	made := p.value(value, at)
	isNeeded := isRequired(p.of, name)
	switch {
	case made == never && isNeeded:
		p.nothing = cmp.Or(p.nothing, at)
		return false
	case made == never:
		if p.hasExtra {
			p.check(at)
		}
		return true
	case isNeeded:
		p.required.values = append(p.required.values, str(name))
	default:
		p.optional++
	}
	p.written.set(name, made)
	return true
}

// extra writes the schema of properties that aren't named; nil if there are none. If a schema that names some doesn't mention others, a
// model that may write any would go on doing so.
func (g *grammar) extra(n *node, at string) *node {
	additional := n.get("additionalProperties")
	var made *node
	switch patterns := n.get("patternProperties"); {
	case patterns != nil && len(patterns.values) > 0:
		all := list()
		for i, name := range patterns.names {
			if one := g.value(patterns.values[i], pointer(pointer(at, "patternProperties"), name)); one != never {
				all.values = append(all.values, one)
			}
		}
		switch len(all.values) {
		case 0:
			return nil
		case 1:
			return all.values[0]
		}
		return object().set("anyOf", all)
	case additional != nil:
		made = g.value(additional, pointer(at, "additionalProperties"))
	case n.has("properties"):
		return nil
	default:
		made = object()
	}
	if made == never {
		return nil
	}
	return made
}

// bounds notes bounds of the number of properties that the grammar doesn't hold anyway.
func (g *grammar) bounds(n *node, at string, required, optional int, hasExtra bool) {
	if least := n.get("minProperties"); least != nil && int(least.num) > required {
		g.check(pointer(at, "minProperties"))
	}
	if most := n.get("maxProperties"); most != nil && (hasExtra || int(most.num) < required+optional) {
		g.check(pointer(at, "maxProperties"))
	}
}

func (g *grammar) array(n *node, at string) *node {
	g.checkAll(n, at, "contains")
	out := object().set("type", str("array"))
	if n.get("uniqueItems").isTrue() {
		g.check(pointer(at, "uniqueItems"))
		out.set("uniqueItems", n.get("uniqueItems"))
	}
	least, most := 0, -1
	if value := n.get("minItems"); value != nil {
		least = int(value.num)
	}
	if value := n.get("maxItems"); value != nil {
		most = int(value.num)
	}
	items := n.get("items")
	rest := object()
	if items != nil {
		rest = g.value(items, pointer(at, "items"))
	}
	prefix := n.get("prefixItems")
	if prefix == nil {
		if rest == never {
			most = 0
		}
		switch {
		case most >= 0 && least > most:
			return never
		case most == 0:
			return object().set("const", list())
		}
		out.set("items", rest)
		switch {
		case least > maxLeast:
			g.check(pointer(at, "minItems"))
		case least > 0:
			out.set("minItems", number(strconv.Itoa(least)))
		}
		if most > 0 {
			out.set("maxItems", number(strconv.Itoa(most)))
		}
		return out
	}
	return g.tuple(out, prefix.values, rest, least, most, at)
}

// tuple writes the schema of an array that begins with elements of their own: it ends with them, unless it has to be longer.
func (g *grammar) tuple(out *node, prefix []*node, rest *node, least, most int, at string) *node {
	g.isRewritten = true
	made := list()
	for i, one := range prefix {
		if most >= 0 && i >= most {
			break
		}
		element := g.value(one, pointer(pointer(at, "prefixItems"), strconv.Itoa(i)))
		if element == never {
			most = i
			break
		}
		made.values = append(made.values, element)
	}
	if least > maxUnrolled {
		g.check(pointer(at, "minItems"))
		least = 0
	}
	for len(made.values) < least {
		if rest == never || most >= 0 && len(made.values) >= most {
			return never
		}
		made.values = append(made.values, rest)
		g.rules++
	}
	if len(made.values) == 0 {
		return object().set("const", list())
	}
	return out.set("prefixItems", made)
}
