package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// grammar writes a tidy schema as one that the engine holds an answer to: with the keywords that it knows only, and in the places where
// it heeds them. What is written may allow less than the schema where that leaves a sensible answer: an object without further
// properties, an array that is as long as its prefix. What it can't say is noted, to be checked.
type grammar struct {
	*document
	prefix     string
	defs       []*node // nil while one is written
	names      map[*node]int
	checked    []string       // places of what the engine doesn't hold an answer to
	open       map[*node]bool // what is written in place of a reference to it
	same       map[*node]bool // definitions that are being written for the same value
	nothing    string         // the place of the first value that has to be there, but that nothing matches
	rules      int
	isTooLarge bool

	isRewritten bool // such that the engine takes more heed of it

	depth int
}

func (g *grammar) check(at string) { g.checked = append(g.checked, at) }

func (g *grammar) checkAll(n *node, at string, keywords ...string) {
	for _, name := range keywords {
		if n.has(name) {
			g.check(pointer(at, name))
		}
	}
}

func (g *grammar) definitions() string {
	var all []string
	for i, def := range g.defs {
		if def == never { // something leads to it that is never chosen
			def = object().set("enum", list(str("")))
		}
		all = append(all, string(jsonbody.AppendString(nil, g.prefix+strconv.Itoa(i)))+":"+def.String())
	}
	return strings.Join(all, ",")
}

// told are the keywords that say to other servers what a schema is for.
var told = []string{"title", "description"}

// says returns the keywords of a schema that restrict what matches, besides some.
func says(n *node, besides ...string) (names []string) {
	for _, name := range n.names {
		if slices.Contains(restricting, name) && !slices.Contains(besides, name) {
			names = append(names, name)
		}
	}
	return names
}

// restricting are the keywords that restrict what matches. All others are annotations, or unknown, and have no effect.
var restricting = slices.Concat([]string{
	"$ref", "type", "const", "enum", "allOf", "anyOf", "oneOf", "if", "then", "else",
}, unsayable, keywordsOf["object"], keywordsOf["array"], keywordsOf["string"], keywordsOf["number"])

// schema writes a schema; never if nothing matches it.
func (g *grammar) schema(n *node, at string) *node {
	if n == never {
		return never
	}
	if g.rules++; g.isTooLarge || g.rules > maxWork || g.depth > 4*maxDepth {
		g.isTooLarge = true
		return object()
	}
	g.depth++
	out := g.composed(n, at)
	if g.depth--; out != never {
		for _, name := range told {
			if text := n.get(name); text != nil && text.kind == 's' && !out.has(name) {
				out = out.without() // it may be written elsewhere, too
				out.set(name, text)
			}
		}
	}
	return out
}

// unsayable are keywords that no grammar can say.
var unsayable = []string{
	"not", "$dynamicRef", "$recursiveRef", "dependentSchemas", "dependencies", "unevaluatedProperties", "unevaluatedItems",
}

func (g *grammar) composed(n *node, at string) *node {
	g.checkAll(n, at, unsayable...)
	if n.has("if") && (n.has("then") || n.has("else")) {
		g.check(pointer(at, "if"))
	}
	n = n.without(unsayable...).without("if", "then", "else", "$defs", "definitions")
	switch {
	case n.has("allOf"):
		all := n.get("allOf").values
		base := n.without("allOf")
		if len(all) == 1 && len(says(base)) == 0 {
			return g.schema(all[0], pointer(at, "allOf")+"/0")
		}
		for i, one := range all {
			base = g.merge(base, g.inline(one, pointer(at, "allOf")+"/"+strconv.Itoa(i)), at)
		}
		return g.schemaInPlace(base, all, at)
	case n.has("$ref"):
		ref := n.get("$ref").text
		if len(says(n, "$ref")) == 0 {
			return g.reference(ref, at)
		}
		base := n.without("$ref")
		if target := g.inline(object().set("$ref", n.get("$ref")), at); !target.has("$ref") {
			return g.schemaInPlace(g.merge(base, target, at), []*node{n}, at)
		}
		g.check(at)
		return g.reference(ref, at)
	case n.has("anyOf"), n.has("oneOf"):
		return g.alternatives(n, at)
	default:
		return g.plain(n, at)
	}
}

// inline returns a schema, or what it refers to; the schema itself if that is being written.
func (g *grammar) inline(n *node, at string) *node {
	for range maxDepth {
		ref := n.get("$ref")
		if ref == nil {
			return n
		}
		target := g.target(ref.text)
		if target == nil || g.open[target] {
			return n
		}
		if rest := n.without("$ref"); len(says(rest)) > 0 {
			target = g.merge(rest, target, at)
		}
		n = target
	}
	return n
}

// schemaInPlace writes a schema in which others have been merged, which must not be merged into it once more below it.
func (g *grammar) schemaInPlace(merged *node, from []*node, at string) *node {
	var opened []*node
	for _, one := range from {
		for range maxDepth {
			ref := one.get("$ref")
			if ref == nil {
				break
			}
			if one = g.target(ref.text); one == nil || g.open[one] {
				break
			}
			g.open[one] = true
			opened = append(opened, one)
		}
	}
	out := g.schema(merged, at)
	for _, one := range opened {
		delete(g.open, one)
	}
	return out
}

func (g *grammar) reference(ref, at string) *node {
	target := g.target(ref)
	switch {
	case target == nil:
		g.tidy.fail(pointer(at, "$ref"), "leads nowhere in the schema itself: "+short(ref)+
			`. It must be such as "#/$defs/name"; other documents are not fetched`)
		return object()
	case target == never:
		return never
	case g.same[target]:
		g.tidy.fail(pointer(at, "$ref"), "leads back to itself, without a value in between: "+short(ref))
		return object()
	}
	i, ok := g.names[target]
	if !ok {
		i = len(g.defs)
		g.names[target] = i
		g.defs = append(g.defs, nil)
		g.same[target] = true
		out := g.schema(target, ref)
		delete(g.same, target)
		g.defs[i] = out
	}
	if g.defs[i] == never {
		return never
	}
	return object().set("$ref", str("#/$defs/"+g.prefix+strconv.Itoa(i)))
}

// value writes the schema of a value within the value, such as a property.
func (g *grammar) value(n *node, at string) *node {
	same := g.same
	g.same = map[*node]bool{}
	out := g.schema(n, at)
	g.same = same
	return out
}

// alternatives writes a schema with alternatives: the engine heeds nothing beside them, so what is beside them is put into each.
func (g *grammar) alternatives(n *node, at string) *node {
	keyword := "anyOf"
	if n.has("oneOf") {
		g.checkAll(n, at, "anyOf")
		keyword = "oneOf"
	}
	base := n.without("anyOf", "oneOf")
	given := n.get(keyword).values
	out := list()
	for i, one := range given {
		at := pointer(at, keyword) + "/" + strconv.Itoa(i)
		var made *node
		if len(says(base)) == 0 {
			made = g.schema(one, at)
		} else {
			made = g.schemaInPlace(g.merge(base, g.inline(one, at), at), []*node{one}, at)
		}
		if made != never {
			out.values = append(out.values, made)
		}
	}
	if keyword == "oneOf" && !g.areDisjoint(given) {
		g.check(pointer(at, keyword))
	}
	switch len(out.values) {
	case 0:
		return never
	case 1:
		return out.values[0]
	default:
		return object().set("anyOf", out)
	}
}

// maxCompared is the maximum number of alternatives that are compared with each other.
const maxCompared = 64

// areDisjoint reports whether it is plain that no value matches two of some schemas: their types differ, or the values of a property.
func (g *grammar) areDisjoint(schemas []*node) bool {
	if g.rules += len(schemas); len(schemas) > maxCompared || g.rules > maxWork {
		return false
	}
	for i, a := range schemas {
		for _, b := range schemas[:i] {
			if !g.isApart(g.inline(a, ""), g.inline(b, "")) {
				return false
			}
		}
	}
	return true
}

func (g *grammar) isApart(a, b *node) bool {
	kindsA, kindsB := kindsOf(a), kindsOf(b)
	if len(kindsA) > 0 && len(kindsB) > 0 && len(common(kindsA, kindsB)) == 0 {
		return true
	}
	if valuesA, valuesB := valuesOf(a), valuesOf(b); valuesA != nil && valuesB != nil && len(intersection(valuesA, valuesB)) == 0 {
		return true
	}
	propertiesA, propertiesB := a.get("properties"), b.get("properties")
	if propertiesA == nil || propertiesB == nil {
		return false
	}
	for i, name := range propertiesA.names {
		if other := propertiesB.get(name); other != nil && isRequired(a, name) && isRequired(b, name) {
			valuesA, valuesB := valuesOf(propertiesA.values[i]), valuesOf(other)
			if valuesA != nil && valuesB != nil && len(intersection(valuesA, valuesB)) == 0 {
				return true
			}
		}
	}
	return false
}

func valuesOf(n *node) []*node {
	if value := n.get("const"); value != nil {
		return []*node{value}
	}
	if values := n.get("enum"); values != nil {
		return values.values
	}
	return nil
}
