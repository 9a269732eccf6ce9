package schema

import (
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

type node struct {
	kind   byte     // '{', '[', or that of a scalar: 's' string, 'n' number, 't' true, 'f' false, '0' null
	raw    string   // JSON of a scalar
	text   string   // of a string
	num    float64  // of a number
	names  []string // of an object
	values []*node  // of an object or an array
}

// maxDepth is how many levels of JSON a schema may have.
const maxDepth = 64

// reader reads a value within bounds. What is beyond them is left out.
type reader struct {
	left   int  // how many more values are read
	isDeep bool // something was below maxDepth

	isChanged bool // a number was beyond those that there are
}

func (r *reader) read(v gjson.Result, depth int) *node {
	r.left--
	switch {
	case v.IsObject(), v.IsArray():
		n := &node{kind: '['}
		if v.IsObject() {
			n.kind = '{'
		}
		if depth == 0 {
			r.isDeep = true
			return n
		}
		v.ForEach(func(key, inner gjson.Result) bool {
			if n.kind == '{' {
				n.names = append(n.names, key.Str)
			}
			n.values = append(n.values, r.read(inner, depth-1))
			return r.left > 0
		})
		return n
	case v.Type == gjson.String:
		return &node{kind: 's', raw: v.Raw, text: v.Str}
	case v.Type == gjson.Number && math.Abs(v.Num) > math.MaxFloat64: // no engine can read it
		r.isChanged = true
		return number(strconv.FormatFloat(math.Copysign(math.MaxFloat64, v.Num), 'g', -1, 64))
	case v.Type == gjson.Number:
		return &node{kind: 'n', raw: v.Raw, num: v.Num}
	case v.Type == gjson.True:
		return boolean(true)
	case v.Type == gjson.False:
		return never
	default:
		return &node{kind: '0', raw: "null"}
	}
}

// never is the schema that nothing matches.
var never = &node{kind: 'f', raw: "false"}

func object() *node              { return &node{kind: '{'} }
func list(values ...*node) *node { return &node{kind: '[', values: values} }

func str(s string) *node {
	return &node{kind: 's', raw: string(jsonbody.AppendString(nil, s)), text: s}
}

func boolean(is bool) *node {
	if is {
		return &node{kind: 't', raw: "true"}
	}
	return never
}

func number(raw string) *node { return &node{kind: 'n', raw: raw, num: gjson.Parse(raw).Num} }

func (n *node) isObject() bool { return n != nil && n.kind == '{' }
func (n *node) isList() bool   { return n != nil && n.kind == '[' }
func (n *node) isNumber() bool { return n != nil && n.kind == 'n' }
func (n *node) isTrue() bool   { return n != nil && n.kind == 't' }
func (n *node) isFalse() bool  { return n != nil && n.kind == 'f' }

func (n *node) get(name string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	if i := slices.Index(n.names, name); i >= 0 {
		return n.values[i]
	}
	return nil
}

func (n *node) has(name string) bool { return n.get(name) != nil }

// set sets a member, or adds it at the end. It returns n.
func (n *node) set(name string, value *node) *node {
	if i := slices.Index(n.names, name); i >= 0 {
		n.values[i] = value
		return n
	}
	n.names, n.values = append(n.names, name), append(n.values, value)
	return n
}

func (n *node) without(names ...string) *node {
	rest := object()
	for i, name := range n.names {
		if !slices.Contains(names, name) {
			rest.names, rest.values = append(rest.names, name), append(rest.values, n.values[i])
		}
	}
	return rest
}

func (n *node) append(dst []byte) []byte {
	switch n.kind {
	case '{':
		dst = append(dst, '{')
		for i, name := range n.names {
			dst = append(jsonbody.AppendString(jsonbody.AppendComma(dst), name), ':')
			dst = n.values[i].append(dst)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for _, value := range n.values {
			dst = value.append(jsonbody.AppendComma(dst))
		}
		return append(dst, ']')
	default:
		return append(dst, n.raw...)
	}
}

func (n *node) String() string { return string(n.append(nil)) }

func same(a, b *node) bool {
	return a == b || a.kind == b.kind && a.raw == b.raw && slices.Equal(a.names, b.names) && slices.EqualFunc(a.values, b.values, same)
}
