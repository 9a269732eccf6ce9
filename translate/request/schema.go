package request

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits of the JSON schemas of one request. An engine compiles them to a grammar and checks each token against it. Measured:
// schemas within the limits compile in well under a second.
const (
	maxSchemaBytes   = 512 << 10
	maxSchemaDepth   = 64     // levels of JSON
	maxSchemaFields  = 512    // properties of one object
	maxSchemaValues  = 20_000 // JSON values
	maxSchemaMembers = 1024   // members of one enum
	maxSchemaRepeats = 1 << 20
	maxSchemaWork    = 60_000 // see SchemaWork
)

// SchemaWork adds up the cost of compiling the schemas of a request: one for each subschema each time a reference leads to
// it, and for an object half the square of the number of its optional properties, since any of them may be left out.
type SchemaWork struct {
	path  string
	root  gjson.Result
	sum   int
	cost  map[string]int // of the targets of references
	open  map[string]bool
	loops schemaLoops
}

// Check rejects a schema that is too large.
func (w *SchemaWork) Check(path string, schema gjson.Result) *translate.Error {
	if len(schema.Raw) > maxSchemaBytes {
		return tooLargeSchema(path, "bytes", len(schema.Raw), maxSchemaBytes)
	}
	if size := jsonbody.SizeOf(schema); size.Depth > maxSchemaDepth {
		return tooLargeSchema(path, "levels", size.Depth, maxSchemaDepth)
	} else if size.Values > maxSchemaValues {
		return tooLargeSchema(path, "values", size.Values, maxSchemaValues)
	}
	w.path, w.root, w.cost, w.open = path, schema, map[string]int{}, map[string]bool{}
	w.loops = schemaLoops{root: schema, state: map[string]int{}}
	n, err := w.of(schema)
	if err != nil {
		return err
	}
	if w.sum += n; w.sum > maxSchemaWork {
		return translate.Invalid("invalid_schema", path, `"`+path+`" is too large with all that its references lead to: together with the request's other schemas it is compiled to more than `+
			strconv.Itoa(maxSchemaWork)+` rules. Leave out optional properties, alternatives or tools.`)
	}
	return nil
}

// QuoteShort quotes a client's text, shortened for a message.
func QuoteShort(s string) string {
	const enough = 100
	if len(s) > enough {
		s = strings.ToValidUTF8(s[:enough], "") + "…"
	}
	return `"` + s + `"`
}

func tooLargeSchema(path, what string, have, most int) *translate.Error {
	return translate.Invalid("invalid_schema", path, `"`+path+`" has `+strconv.Itoa(have)+` `+what+`; at most `+strconv.Itoa(most)+` are allowed.`)
}

// of returns the cost of a subschema.
func (w *SchemaWork) of(schema gjson.Result) (int, *translate.Error) {
	if !schema.IsObject() {
		return 1, nil // a boolean, or ignored by engines
	}
	sum := 1
	add := func(inner gjson.Result) *translate.Error {
		n, err := w.of(inner)
		sum = min(sum+n, 2*maxSchemaWork)
		return err
	}
	bad := w.crossed(schema)
	if bad != nil {
		return 0, bad
	}
	schema.ForEach(func(key, value gjson.Result) bool {
		if bad = w.shape(key.Str, value); bad != nil {
			return false
		}
		switch key.Str {
		case "properties", "patternProperties", "dependentSchemas":
			var n int
			n, bad = w.properties(schema, value)
			sum = min(sum+n, 2*maxSchemaWork)
		case "$ref":
			var n int
			n, bad = w.reference(value)
			sum = min(sum+n, 2*maxSchemaWork)
		case "enum":
			if n := len(value.Array()); n > maxSchemaMembers {
				bad = tooLargeSchema(w.path, `members in one "enum"`, n, maxSchemaMembers)
			} else {
				sum += n
			}
		case "pattern":
			bad = checkPattern(w.path, value)
		case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
			bad = w.repeats(key.Str, value)
		case "oneOf", "anyOf", "allOf", "prefixItems", "items":
			for _, inner := range value.Array() { // items may be a single schema
				if bad = add(inner); bad != nil {
					break
				}
			}
		case "additionalProperties", "additionalItems", "not", "if", "then", "else", "contains", "propertyNames":
			bad = add(value)
		}
		return bad == nil
	})
	return sum, bad
}

// properties returns the cost of the properties of an object.
func (w *SchemaWork) properties(schema, properties gjson.Result) (int, *translate.Error) {
	required := map[string]bool{}
	for _, name := range schema.Get("required").Array() {
		required[name.Str] = true
	}
	sum, count, optional := 0, 0, 0
	var bad *translate.Error
	properties.ForEach(func(name, inner gjson.Result) bool {
		var n int
		n, bad = w.of(inner)
		sum = min(sum+n, 2*maxSchemaWork)
		if count++; !required[name.Str] {
			optional++
		}
		return bad == nil
	})
	if count > maxSchemaFields {
		return 0, tooLargeSchema(w.path, "properties in one object", count, maxSchemaFields)
	}
	return sum + optional*optional/2, bad
}

// reference returns the cost of the target of a reference. A recursive reference adds nothing, since an engine compiles its
// target once.
func (w *SchemaWork) reference(ref gjson.Result) (int, *translate.Error) {
	if ref.Type != gjson.String || !strings.HasPrefix(ref.Str, "#/") {
		return 0, translate.Invalid("invalid_schema", w.path, `A "$ref" of "`+w.path+`" must lead to a place in the schema itself, such as "#/$defs/name"; other documents are not fetched.`)
	}
	if w.loops.has(ref.Str) {
		return 0, translate.Invalid("invalid_schema", w.path, `The "$ref" `+QuoteShort(ref.Str)+` of "`+w.path+`" leads back to itself, without a value in between.`)
	}
	if w.open[ref.Str] {
		return 1, nil
	}
	if n, ok := w.cost[ref.Str]; ok {
		return n, nil
	}
	target := targetOf(w.root, ref.Str)
	if !target.Exists() {
		return 0, translate.Invalid("invalid_schema", w.path, `The "$ref" `+QuoteShort(ref.Str)+` of "`+w.path+`" leads nowhere.`)
	}
	w.open[ref.Str] = true
	n, err := w.of(target)
	delete(w.open, ref.Str)
	w.cost[ref.Str] = n
	return n, err
}

// targetOf returns the subschema that a reference of the form "#/…" leads to.
func targetOf(root gjson.Result, ref string) gjson.Result {
	for name := range strings.SplitSeq(ref[2:], "/") {
		root = member(root, name)
	}
	return root
}

// member returns the member of an object or an array that a part of a JSON pointer names, literally or unescaped.
func member(v gjson.Result, name string) (found gjson.Result) {
	plain, err := url.PathUnescape(name)
	if err != nil {
		plain = name
	}
	plain = strings.NewReplacer("~1", "/", "~0", "~").Replace(plain)
	i := -1
	v.ForEach(func(key, value gjson.Result) bool {
		if i++; v.IsArray() {
			key.Str = strconv.Itoa(i)
		}
		if key.Str == name || key.Str == plain && !found.Exists() {
			found = value
		}
		return key.Str != name
	})
	return found
}

// repeats checks the number of repetitions.
func (w *SchemaWork) repeats(name string, v gjson.Result) *translate.Error {
	if v.Type == gjson.Number && (v.Num < 0 || v.Num > maxSchemaRepeats) {
		return translate.Invalid("invalid_schema", w.path, `"`+name+`" in "`+w.path+`" must be from 0 to `+strconv.Itoa(maxSchemaRepeats)+`.`)
	}
	return nil
}
