package schema

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// maxTold is the maximum size of a schema that the model is told as a text, in bytes.
const maxTold = 16 << 10

// Offer returns the schema of the arguments of a tool that is only offered, for the tool's definition: the model reads it, and an engine
// may hold its calls to it. What the engine can't express is rewritten or left out. Of a schema that costs too much only its text is
// left. It is the given JSON if nothing has to be changed, and empty if that isn't an object.
func Offer(given gjson.Result, work *Work) string {
	switch {
	case !given.IsObject():
		return ""
	case len(given.Raw) > maxBytes:
		return anyObject
	}
	r := reader{left: maxValues + 1}
	original := r.read(given, maxDepth)
	o := offerer{document: newDocument(original, &tidier{offered: true}), names: map[*node]string{}}
	o.loops = loops{o.document, map[*node]int{}}
	if c := (coster{o.document, map[*node]int{}, map[*node]bool{}}); r.left <= 0 || !work.take(c.of(o.root)) {
		return toldObject(given.Raw)
	}
	made := o.schema(o.root)
	if kinds := kindsOf(made); len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k *node) bool { return k.text == "object" }) {
		return toldObject(given.Raw)
	}
	if len(o.more) > 0 {
		if !made.has("$defs") {
			made.set("$defs", object())
		}
		definitions := made.get("$defs")
		for i := 0; i < len(o.more); i++ { // making one may add others
			definitions.set(o.names[o.more[i]], o.schema(o.more[i].without("$defs", "definitions")))
		}
	}
	if text := made.String(); r.isDeep || r.isChanged || text != original.String() {
		return text
	}
	return given.Raw
}

const anyObject = `{"type":"object"}`

// toldObject returns the schema of any object, with another schema as its description.
func toldObject(raw string) string {
	if len(raw) > maxTold {
		return anyObject
	}
	return object().set("type", str("object")).set("description", str("An object that matches the JSON schema "+raw)).String()
}

type offerer struct {
	*document
	loops loops
	names map[*node]string // of the definitions that are added, by what they define
	more  []*node          // what these define
}

func (o *offerer) schema(n *node) *node {
	if !n.isObject() {
		return n
	}
	out := object()
	for i, name := range n.names {
		if value := o.keyword(n, name, n.values[i]); value != nil {
			out.names, out.values = append(out.names, name), append(out.values, value)
		}
	}
	return out
}

func (o *offerer) keyword(n *node, name string, value *node) *node {
	switch name {
	case "$ref":
		return o.reference(value)
	case "properties":
		return o.named(value, false)
	case "patternProperties", "dependentSchemas", "$defs", "definitions":
		return o.named(value, true)
	case "anyOf", "oneOf", "allOf", "prefixItems":
		return o.schemas(value)
	case "additionalProperties":
		if !value.isFalse() && !areExcludable(n.get("properties")) {
			return nil
		}
		return o.schema(value)
	case "items":
		if value.isFalse() {
			return nil
		}
		return o.schema(value)
	case "not", "if", "then", "else", "contains", "propertyNames":
		return o.schema(value)
	case "pattern":
		engine, ok := enginePattern(value.text)
		if !ok || engine == "^$" {
			return nil
		}
		if engine == value.text {
			return value
		}
		return str(engine)
	case "maxItems":
		if value.num == 0 {
			return nil
		}
	case "minItems", "minLength":
		if value.num > maxLeast {
			return nil
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		if !areSafe(n) {
			return nil
		}
	}
	return value
}

// areSafe reports whether the engine can make a grammar of the bounds of a number. It does that for integers only.
func areSafe(n *node) bool {
	low, high := math.Inf(-1), math.Inf(1)
	for name, bound := range map[string]*float64{"minimum": &low, "exclusiveMinimum": &low, "maximum": &high, "exclusiveMaximum": &high} {
		switch value := n.get(name); {
		case value == nil:
		case math.Abs(value.num) > maxBound:
			return false
		case bound == &low:
			low = max(low, value.num)
		default:
			high = min(high, value.num)
		}
	}
	return low <= high && (high-low > 2 || math.Floor(high) >= math.Ceil(low) && !n.has("exclusiveMinimum") && !n.has("exclusiveMaximum"))
}

// areExcludable reports whether the engine can make a grammar of the names that aren't among these.
func areExcludable(properties *node) bool {
	return properties == nil || !slices.ContainsFunc(properties.names, func(name string) bool {
		return name == "" || strings.ContainsAny(name, `]\^"-`) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' })
	})
}

// named rewrites schemas by name. A property that can't be is left out.
func (o *offerer) named(value *node, keepsNever bool) *node {
	out := object()
	for i, name := range value.names {
		if inner := value.values[i]; inner != never || keepsNever {
			out.names, out.values = append(out.names, name), append(out.values, o.schema(inner))
		}
	}
	return out
}

func (o *offerer) schemas(value *node) *node {
	out := list()
	for _, inner := range value.values {
		if inner != never {
			out.values = append(out.values, o.schema(inner))
		}
	}
	if len(out.values) == 0 {
		return nil
	}
	return out
}

// reference returns a reference that the engine can follow: it doesn't unescape names. What it can't find gets a definition of its own.
func (o *offerer) reference(ref *node) *node {
	target := o.target(ref.text)
	if !target.isObject() || o.loops.has(ref.text) {
		return nil
	}
	at := o.root
	isPlain := strings.HasPrefix(ref.text, "#/")
	for part := range strings.SplitSeq(strings.TrimPrefix(ref.text, "#/"), "/") {
		isPlain = isPlain && part == unescaped(part) && (at.isList() || at.has(part))
		at = member(at, part)
		if at == nil {
			break
		}
	}
	if isPlain && at == target {
		return ref
	}
	name, ok := o.names[target]
	if !ok {
		for i := len(o.more) + 1; ; i++ {
			if name = "definition" + strconv.Itoa(i); !o.root.get("$defs").has(name) {
				break
			}
		}
		o.names[target] = name
		o.more = append(o.more, target)
	}
	return str("#/$defs/" + name)
}

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
		switch value := n.values[i]; {
		case slices.Contains(byName, name), slices.Contains(inList, name):
			for _, inner := range value.values {
				inner.typed(name == "properties")
			}
		case slices.Contains(single, name):
			value.typed(false)
		}
	}
}

func firstKind(kinds *node) *node {
	for _, kind := range asList(kinds) {
		if kind.kind == 's' && (kind.text != "null" || !kinds.isList()) {
			return kind
		}
	}
	return str("string")
}

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
