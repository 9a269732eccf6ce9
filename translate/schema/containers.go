package schema

import "strconv"

// maxLeast is how often something can have to be repeated in a grammar.
const maxLeast = 1000

// maxUnrolled is how many elements an array may have in a grammar that says each of them.
const maxUnrolled = 256

// object writes the schema of an object.
func (g *grammar) object(n *node, at string) *node {
	g.checkAll(n, at, "patternProperties", "propertyNames", "dependentRequired")
	out, properties, required := object().set("type", str("object")), object(), list()
	given, extra := n.get("properties"), g.extra(n, at)
	optional := 0
	add := func(name string, value *node) bool {
		made := g.value(value, pointer(pointer(at, "properties"), name))
		isNeeded := isRequired(n, name)
		switch {
		case made == never && isNeeded:
			return false
		case made == never:
			if extra != nil {
				g.check(pointer(pointer(at, "properties"), name))
			}
			return true
		case isNeeded:
			required.values = append(required.values, str(name))
		default:
			optional++
		}
		properties.set(name, made)
		return true
	}
	if given != nil {
		for i, name := range given.names {
			if !add(name, given.values[i]) {
				return never
			}
		}
	}
	if names := n.get("required"); names != nil {
		for _, name := range names.values {
			if given.has(name.text) || properties.has(name.text) {
				continue
			}
			g.isRewritten = true
			value := n.get("additionalProperties")
			if value == nil || n.has("patternProperties") {
				value = object()
			}
			if !add(name.text, value) {
				return never
			}
		}
	}
	g.bounds(n, at, len(required.values), optional, extra != nil)
	if g.rules += optional * optional / 2; len(properties.names) > maxFields {
		g.isTooLarge = true
	}
	if given != nil || len(properties.names) > 0 || extra == nil {
		out.set("properties", properties)
	}
	if len(required.values) > 0 {
		out.set("required", required)
	}
	switch {
	case extra != nil && len(extra.names) == 0 && !out.has("properties"):
		return out // as without the keyword
	case extra == nil, !areExcludable(properties): // the latter leaves less than the schema allows
		return out.set("additionalProperties", never)
	default:
		return out.set("additionalProperties", extra)
	}
}

// extra writes the schema of properties that aren't named; nil if there are none. If a schema that names some doesn't mention others, a model that
// may write any would go on doing so.
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

// array writes the schema of an array.
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
	return g.tuple(n, out, prefix.values, rest, least, most, at)
}

// tuple writes the schema of an array that begins with elements of their own: it ends with them, unless it has to be longer.
func (g *grammar) tuple(n, out *node, prefix []*node, rest *node, least, most int, at string) *node {
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
