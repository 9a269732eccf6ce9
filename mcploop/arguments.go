package mcploop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits of the arguments of a call, and of the check against their schema.
const (
	maxArgumentBytes  = 1 << 20
	maxArgumentDepth  = 64
	maxArgumentValues = 20_000
	maxCheckSteps     = 1_000_000 // see stepFormats
	maxReason         = 1 << 10   // bytes
)

// refuse returns why a call with these arguments can't be made; empty if it can. What the model reads of it is meant to help it
// to correct the call.
func (o *offer) refuse(args []byte) string {
	if len(args) > maxArgumentBytes {
		return fmt.Sprintf("The arguments have %d bytes; at most %d are allowed.", len(args), maxArgumentBytes)
	}
	s := jsonbody.Scanner{Data: args}
	s.Space()
	bad := s.Value(jsonbody.MaxDepth - maxArgumentDepth)
	if s.Space(); bad != nil || s.Pos != len(args) || !jsonbody.IsObject(args) {
		return "The arguments are not a valid JSON object."
	}
	if s.Values > maxArgumentValues {
		return fmt.Sprintf("The arguments have more than %d values.", maxArgumentValues)
	}
	if len(o.Schema) == 0 {
		return ""
	}
	err := check(o.Schema, args)
	if err == nil {
		return ""
	}
	reason := "The arguments don't fit the tool's schema: " + err.Error()
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	return reason
}

// check checks arguments against a schema. A schema that can't be used, or that takes too many steps, allows everything: the
// server checks its arguments itself.
func check(schema json.RawMessage, args []byte) (mismatch error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return errors.New("they are no JSON")
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	compiler.UseRegexpEngine(compilePattern)
	compiler.AssertFormat()
	steps := stepFormats{compiler: compiler, left: maxCheckSteps, known: map[int]bool{}}
	steps.mark(doc)
	const name = "schema.json"
	if err := compiler.AddResource(name, doc); err != nil {
		return nil
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, errTooManySteps) {
				panic(p)
			}
			mismatch = nil
		}
	}()
	if err := compiled.Validate(value); err != nil {
		return plain(err)
	}
	return nil
}

// plain returns the causes of a validation error, in one line.
func plain(err error) error {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	var lines []string
	for line := range strings.Lines(invalid.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "- ")
		if line != "" && !strings.HasPrefix(line, "jsonschema validation failed") {
			lines = append(lines, strings.TrimPrefix(line, "at '': "))
		}
	}
	return errors.New(strings.Join(lines, "; "))
}

// noLoader loads no schemas from elsewhere.
type noLoader struct{}

// Load returns an error.
func (noLoader) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not fetched", url) }

// anything is a pattern that Go's regular expressions don't have. It matches everything.
type anything string

// MatchString returns true.
func (anything) MatchString(string) bool { return true }

// String returns the pattern.
func (p anything) String() string { return string(p) }

func compilePattern(pattern string) (jsonschema.Regexp, error) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return anything(pattern), nil
	}
	return compiled, nil
}

var errTooManySteps = errors.New("too many steps")

// stepFormats count the steps of a check, since schemas with references to themselves can take exponentially many. Every
// subschema gets a format, whose check is called before those of the schemas in it. The formats of the schema itself aren't checked.
type stepFormats struct {
	compiler *jsonschema.Compiler
	left     int
	known    map[int]bool
}

// Keywords of JSON schema whose values map names to schemas, and those whose values aren't schemas.
var (
	namedSchemas = []string{"properties", "patternProperties", "dependentSchemas", "dependentRequired", "dependencies", "$defs", "definitions"}
	noSchemas    = []string{"const", "default", "enum", "example", "examples"}
)

// mark sets the format of a schema, and of all in it.
func (f *stepFormats) mark(v any) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			f.mark(inner)
		}
	case map[string]any:
		weight := len(v)
		for name, inner := range v {
			named, isObject := inner.(map[string]any)
			switch list, isList := inner.([]any); {
			case slices.Contains(namedSchemas, name) && isObject:
				weight += len(named)
				for _, schema := range named {
					f.mark(schema)
				}
			case slices.Contains(noSchemas, name):
				if isList {
					weight += len(list)
				}
			default:
				if isList {
					weight += len(list)
				}
				f.mark(inner)
			}
		}
		v["format"] = f.format(weight)
	}
}

// format returns the name of the format that counts a number of steps.
func (f *stepFormats) format(weight int) string {
	name := fmt.Sprintf("steps-%d", weight)
	if !f.known[weight] {
		f.known[weight] = true
		f.compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error {
			if f.left -= weight; f.left < 0 {
				panic(errTooManySteps)
			}
			return nil
		}})
	}
	return name
}
