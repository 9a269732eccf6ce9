package schema

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of a check.
const (
	maxCheckSteps = 1_000_000   // see stepFormats
	maxReason     = 1 << 10     // bytes of what is told of a mismatch
	maxCheckTime  = time.Second // of patterns that only regexp2 has, whose time isn't linear
)

// ErrTooManySteps is the error of a check that would take too long: a schema with references to itself can take exponentially many steps.
var ErrTooManySteps = errors.New("it takes too many steps to check")

// Checker checks values against a schema. Formats are not checked: to JSON Schema they are annotations.
type Checker struct {
	mu       sync.Mutex
	compiled *jsonschema.Schema
	steps    *stepFormats
}

// NewChecker returns a checker of a schema. The error says why there can be none, such as a reference to another document.
func NewChecker(schema []byte) (*Checker, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(noLoader{})
	steps := &stepFormats{compiler: compiler, known: map[int]bool{}}
	compiler.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		switch compiled := compilePattern(pattern).(type) {
		case *regexp2.Regexp:
			return ecma{compiled, steps}, nil
		case *regexp.Regexp:
			return compiled, nil
		default: // no regular expression: it matches everything
			return regexp.MustCompile(""), nil
		}
	})
	compiler.AssertFormat()
	steps.mark(doc)
	const name = "schema.json"
	if err := compiler.AddResource(name, doc); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(name)
	if err != nil {
		return nil, err
	}
	return &Checker{compiled: compiled, steps: steps}, nil
}

// Check returns why a value, given as JSON, doesn't match the schema, in one line; nil if it does. [ErrTooManySteps]: that isn't known.
func (c *Checker) Check(value []byte) (mismatch error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return errors.New("it is no JSON")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, ErrTooManySteps) {
				panic(p)
			}
			mismatch = ErrTooManySteps
		}
	}()
	c.steps.left, c.steps.until = maxCheckSteps, time.Now().Add(maxCheckTime)
	if err := c.compiled.Validate(v); err != nil {
		return plain(err)
	}
	return nil
}

func plain(err error) error {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	var lines []string
	for line := range strings.Lines(invalid.Error()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "- ")
		if line != "" && !strings.HasPrefix(line, "jsonschema validation failed") {
			lines = append(lines, line)
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int { // they come in the random order of an object's properties
		a, _, _ = strings.Cut(a, "': ")
		b, _, _ = strings.Cut(b, "': ")
		return strings.Compare(a, b)
	})
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "at '': ")
	}
	text := strings.Join(lines, "; ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return errors.New(text)
}

type noLoader struct{}

// Load returns an error.
func (noLoader) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not fetched", url) }

// ecma is a pattern that only JavaScript's regular expressions have, such as one that looks ahead.
type ecma struct {
	*regexp2.Regexp
	steps *stepFormats
}

// MatchString reports whether a text matches. It panics with [ErrTooManySteps].
func (p ecma) MatchString(s string) bool {
	found, err := p.Regexp.MatchString(s)
	if err != nil || time.Now().After(p.steps.until) {
		panic(ErrTooManySteps)
	}
	return found
}

// compilePattern returns a [regexp.Regexp], or else a [regexp2.Regexp], of a pattern; nil if it is no regular expression.
func compilePattern(pattern string) any {
	if compiled, err := regexp.Compile(fromECMA(pattern)); err == nil {
		return compiled
	}
	compiled, err := regexp2.Compile(pattern, regexp2.ECMAScript)
	if err != nil {
		return nil
	}
	compiled.MatchTimeout = maxCheckTime
	return compiled
}

// stepFormats count the steps of a check. Every subschema gets a format, whose check is called before those of the schemas in it. The
// formats of the schema itself aren't checked.
type stepFormats struct {
	compiler *jsonschema.Compiler
	left     int
	until    time.Time // when the check ends
	known    map[int]bool
}

// Keywords of JSON schema whose values map names to schemas, and those whose values aren't schemas.
var (
	namedSchemas = append([]string{"dependentRequired", "dependencies"}, byName...)
	noSchemas    = append([]string{"const", "enum"}, annotations...)
)

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

func (f *stepFormats) format(weight int) string {
	name := fmt.Sprintf("steps-%d", weight)
	if !f.known[weight] {
		f.known[weight] = true
		f.compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error {
			if f.left -= weight; f.left < 0 {
				panic(ErrTooManySteps)
			}
			return nil
		}})
	}
	return name
}
