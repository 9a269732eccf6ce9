package schema

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

type document struct {
	root *node
	tidy *tidier
	late map[*node]*node // schemas at places where nobody expects any, by what they were
}

func newDocument(original *node, t *tidier) *document {
	t.made = map[*node]bool{}
	return &document{root: t.schema(original, "#"), tidy: t, late: map[*node]*node{}}
}

// unescaped returns a part of a reference as the name that it stands for.
func unescaped(part string) string {
	if plain, err := url.PathUnescape(part); err == nil {
		part = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
}

func (d *document) target(ref string) *node {
	at := d.root
	if id := at.get("$id"); id != nil && id.text != "" {
		ref = strings.TrimPrefix(ref, strings.TrimSuffix(id.text, "#"))
	}
	path, isPath := strings.CutPrefix(ref, "#/")
	switch {
	case ref == "#", ref == "#/": // the whole document
	case !isPath:
		return d.anchored(ref)
	default:
		for part := range strings.SplitSeq(path, "/") {
			if at = member(at, part); at == nil {
				return nil
			}
		}
	}
	switch {
	case at.isFalse(), d.tidy.made[at]:
		return at
	case !at.isObject() && !at.isTrue():
		return nil
	case d.late[at] == nil:
		d.late[at] = d.tidy.schema(at, ref)
	}
	return d.late[at]
}

// member returns what a part of a reference names, literally or unescaped.
func member(n *node, part string) *node {
	plain := unescaped(part)
	if n.isList() {
		if i, err := strconv.Atoi(plain); err == nil && i >= 0 && i < len(n.values) {
			return n.values[i]
		}
		return nil
	}
	if found := n.get(part); found != nil {
		return found
	}
	if found := n.get(plain); found != nil {
		return found
	}
	if plain == "items" { // an array before draft 2020-12
		return n.get("prefixItems")
	}
	return nil
}

// anchored returns the definition with the name of a reference such as "#name".
func (d *document) anchored(ref string) *node {
	name, ok := strings.CutPrefix(ref, "#")
	if !ok || name == "" {
		return nil
	}
	for _, holder := range []string{"$defs", "definitions"} {
		definitions := d.root.get(holder)
		if definitions == nil {
			continue
		}
		for _, one := range definitions.values {
			if anchor := one.get("$anchor"); anchor != nil && anchor.text == name {
				return one
			}
		}
	}
	return nil
}

// sameValue are the keywords whose schemas are of the value itself.
var sameValue = []string{"$ref", "anyOf", "oneOf", "allOf", "not", "if", "then", "else"}

// loops finds references that lead back to themselves for one and the same value. No grammar can be made of them. A schema that
// contains itself as that of a property or an element is fine.
type loops struct {
	*document
	state map[*node]int // of targets: 1 while they are followed, 2 afterwards
}

func (l *loops) has(ref string) bool {
	target := l.target(ref)
	switch {
	case target == nil, l.state[target] == 2:
		return false
	case l.state[target] == 1:
		return true
	}
	l.state[target] = 1
	found := l.in(target)
	l.state[target] = 2
	return found
}

func (l *loops) in(schema *node) bool {
	if !schema.isObject() {
		return false
	}
	for i, name := range schema.names {
		value := schema.values[i]
		switch {
		case !slices.Contains(sameValue, name):
		case name == "$ref":
			if l.has(value.text) {
				return true
			}
		case value.isList() && slices.ContainsFunc(value.values, l.in), l.in(value):
			return true
		}
	}
	return false
}
