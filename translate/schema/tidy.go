package schema

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// tidier writes a schema such that each keyword of it has the shape that JSON Schema gives it today: of the words of older drafts and
// of other schemas that mean the same, true as {}, and without keywords that are null, which many clients send for absent ones.
//
// What has another shape is a fault of a promise. Of a schema that is only offered it is left out.
type tidier struct {
	offered bool
	fault   *fault         // the first of a promise
	made    map[*node]bool // the schemas written
}

type fault struct{ at, says string }

// maxRepeats is the maximum of what a repetition in a schema may say, and maxBound that of the bounds of an integer.
const (
	maxRepeats = 1 << 20
	maxBound   = 1e15
)

// fail notes a fault. What is offered has none.
func (t *tidier) fail(at, says string) {
	if t.fault == nil && !t.offered {
		t.fault = &fault{at, says}
	}
}

func pointer(at, name string) string {
	return at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func (t *tidier) schema(n *node, at string) *node {
	switch {
	case n.isFalse():
		return never
	case n.isTrue():
		return object()
	case !n.isObject():
		t.fail(at, "must be a schema, which is an object or a boolean, not "+kindOf(n))
		return object()
	}
	out := object()
	for i, name := range n.names {
		if value := n.values[i]; value.kind != '0' || slices.Contains(annotations, name) || name == "const" {
			t.keyword(out, name, value, pointer(at, name))
		}
	}
	t.older(out)
	t.crossed(out, at)
	t.made[out] = true
	return out
}

// The keywords whose values are schemas by name, in an array, or one.
var (
	byName = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
	inList = []string{"anyOf", "oneOf", "allOf", "prefixItems"}
	single = []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
)

// annotations are keywords that restrict nothing, as far as their values may be null.
var annotations = []string{"default", "example", "examples"}

func (t *tidier) keyword(out *node, name string, value *node, at string) {
	switch name {
	case "type":
		value = t.kinds(value, at)
	case "enum":
		if !value.isList() || len(value.values) == 0 {
			t.fail(at, "must be an array with at least one value, not "+kindOf(value))
			return
		}
	case "properties", "patternProperties", "dependentSchemas", "$defs", "definitions":
		value = t.named(value, at)
	case "anyOf", "oneOf", "allOf", "prefixItems":
		value = t.schemas(value, at, name == "anyOf" || name == "oneOf")
	case "items":
		if value.isList() { // as before draft 2020-12
			if len(value.values) > 0 {
				out.set("prefixItems", t.schemas(value, at, false))
			}
			return
		}
		value = t.schema(value, at)
	case "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedProperties", "unevaluatedItems":
		value = t.schema(value, at)
	case "required":
		isOther := func(n *node) bool { return n.kind != 's' }
		names := list(slices.DeleteFunc(slices.Clone(value.values), isOther)...)
		if !value.isList() || len(names.values) == 0 { // in older drafts it was a boolean of a property
			return
		}
		value = names
	case "pattern":
		value = t.pattern(value, at)
	case "$ref", "format", "$dynamicRef", "$recursiveRef":
		if value.kind != 's' {
			t.fail(at, "must be a string, not "+kindOf(value))
			return
		}
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		value = t.count(value, at)
	case "minimum", "maximum", "multipleOf":
		if !value.isNumber() {
			t.fail(at, "must be a number, not "+kindOf(value))
			return
		}
	case "exclusiveMinimum", "exclusiveMaximum":
		if !value.isNumber() && !value.isTrue() && !value.isFalse() {
			t.fail(at, "must be a number, not "+kindOf(value))
			return
		}
	}
	if value != nil {
		out.names, out.values = append(out.names, name), append(out.values, value)
	}
}

func kindOf(n *node) string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		if len(n.values) == 0 {
			return "an empty array"
		}
		return "an array"
	case 's':
		return short(n.text)
	default:
		return n.raw
	}
}

// short quotes a client's text, shortened.
func short(s string) string {
	const enough = 100
	if len(s) > enough {
		s = strings.ToValidUTF8(s[:enough], "") + "…"
	}
	return strconv.Quote(s)
}

var kindNames = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// kindAliases are words for types that other kinds of schemas have.
var kindAliases = map[string]string{
	"int": "integer", "float": "number", "double": "number", "bool": "boolean", "str": "string", "dict": "object", "list": "array",
	"none": "null",
}

func (t *tidier) kinds(value *node, at string) *node {
	given := []*node{value}
	if value.isList() {
		given = value.values
	}
	kept := list()
	for _, one := range given {
		word := strings.ToLower(one.text)
		if alias, ok := kindAliases[word]; ok {
			word = alias
		}
		switch {
		case one.kind == 's' && word == "any":
			return nil
		case one.kind != 's' || !slices.Contains(kindNames, word):
			names := strings.Join(kindNames[:len(kindNames)-1], `", "`)
			t.fail(at, `must be "`+names+`" or "null", or an array of these, not `+kindOf(one))
		case !slices.ContainsFunc(kept.values, func(k *node) bool { return k.text == word }):
			if word != one.text {
				one = str(word)
			}
			kept.values = append(kept.values, one)
		}
	}
	switch {
	case len(kept.values) == 0:
		if len(given) == 0 {
			t.fail(at, "must be a type or an array with at least one, not an empty array")
		}
		return nil
	case !value.isList():
		return kept.values[0]
	default:
		return kept
	}
}

func (t *tidier) named(value *node, at string) *node {
	if !value.isObject() {
		t.fail(at, "must be an object of schemas, not "+kindOf(value))
		return nil
	}
	out := object()
	for i, name := range value.names {
		if value.values[i].kind == '0' { // like an absent one
			continue
		}
		out.names, out.values = append(out.names, name), append(out.values, t.schema(value.values[i], pointer(at, name)))
	}
	return out
}

// schemas returns an array of schemas; nil if it is none. Of alternatives, those are left out that nothing matches.
func (t *tidier) schemas(value *node, at string, areAlternatives bool) *node {
	if !value.isList() || len(value.values) == 0 {
		t.fail(at, "must be an array with at least one schema, not "+kindOf(value))
		return nil
	}
	out := list()
	for i, one := range value.values {
		if s := t.schema(one, pointer(at, strconv.Itoa(i))); s != never || !areAlternatives {
			out.values = append(out.values, s)
		}
	}
	if len(out.values) == 0 {
		t.fail(at, "has no alternative that anything matches")
		return nil
	}
	return out
}

func (t *tidier) count(value *node, at string) *node {
	if !value.isNumber() || value.num < 0 || value.num != math.Trunc(value.num) {
		t.fail(at, "must be a whole number from 0 on, not "+kindOf(value))
		return nil
	}
	if value.num > maxRepeats {
		t.fail(at, "must be at most "+strconv.Itoa(maxRepeats)+", not "+kindOf(value))
		return nil
	}
	if plain := strconv.Itoa(int(value.num)); plain != value.raw { // 2.0
		return number(plain)
	}
	return value
}

func (t *tidier) pattern(value *node, at string) *node {
	if value.kind != 's' {
		t.fail(at, "must be a string, not "+kindOf(value))
		return nil
	}
	if says := costOf(value.text); says != "" {
		t.fail(at, says)
		return nil
	}
	if compilePattern(value.text) == nil {
		t.fail(at, "is no regular expression: "+short(value.text))
		return nil
	}
	return value
}

// older replaces the words of older drafts, and of OpenAPI.
func (t *tidier) older(out *node) {
	for _, bound := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		limit := out.get(bound[0])
		if limit == nil || limit.isNumber() {
			continue
		}
		inclusive := out.get(bound[1])
		*out = *out.without(bound[0])
		if limit.isTrue() && inclusive != nil {
			*out = *out.without(bound[1])
			out.set(bound[0], inclusive)
		}
	}
	if out.has("additionalItems") {
		if out.has("prefixItems") && !out.has("items") {
			out.set("items", out.get("additionalItems"))
		}
		*out = *out.without("additionalItems")
	}
	if out.get("nullable").isTrue() && out.has("type") {
		kinds := list(kindsOf(out)...)
		if !slices.ContainsFunc(kinds.values, func(k *node) bool { return k.text == "null" }) {
			kinds.values = append(kinds.values, str("null"))
		}
		out.set("type", kinds)
		if values := out.get("enum"); values != nil && !slices.ContainsFunc(values.values, func(v *node) bool { return v.kind == '0' }) {
			out.set("enum", list(append(slices.Clip(values.values), number("null"))...))
		}
	}
}

func kindsOf(n *node) []*node {
	if kinds := n.get("type"); kinds != nil {
		return asList(kinds)
	}
	return nil
}

func (t *tidier) crossed(out *node, at string) {
	for _, pair := range [][2]string{
		{"minLength", "maxLength"}, {"minItems", "maxItems"}, {"minProperties", "maxProperties"}, {"minimum", "maximum"},
	} {
		if low, high := out.get(pair[0]), out.get(pair[1]); low.isNumber() && high.isNumber() && low.num > high.num {
			t.fail(pointer(at, pair[0]), "is above "+strconv.Quote(pair[1])+", so that nothing matches")
			*out = *out.without(pair[0], pair[1])
		}
	}
}
