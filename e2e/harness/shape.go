package harness

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

type (
	// shape is the fields that an object must have; those whose names end in a question mark are optional.
	shape map[string]check
	// check returns what is wrong with a value.
	check func(gjson.Result) error
)

// check requires exactly these fields, each once.
func (s shape) check(object gjson.Result) error {
	if !object.IsObject() {
		return fmt.Errorf("%s is no object", object.Raw)
	}
	seen := map[string]bool{}
	var bad error
	object.ForEach(func(key, value gjson.Result) bool {
		ok, known := s[key.Str]
		if !known {
			ok, known = s[key.Str+"?"]
		}
		switch {
		case !known:
			bad = fmt.Errorf("there is no field %s", key.Str)
		case seen[key.Str]:
			bad = fmt.Errorf("%s is there twice", key.Str)
		default:
			seen[key.Str] = true
			if err := ok(value); err != nil {
				bad = fmt.Errorf("%s: %w", key.Str, err)
			}
		}
		return bad == nil
	})
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if bad == nil && !strings.HasSuffix(name, "?") && !seen[name] {
			bad = fmt.Errorf("%s is missing", name)
		}
	}
	return bad
}

func text(v gjson.Result) error {
	if v.Type != gjson.String {
		return fmt.Errorf("%s is no string", v.Raw)
	}
	return nil
}

// filled requires a string that isn't empty.
func filled(v gjson.Result) error {
	if v.Type != gjson.String || v.Str == "" {
		return fmt.Errorf("%s is no string, or empty", v.Raw)
	}
	return nil
}

func number(v gjson.Result) error {
	if v.Type != gjson.Number || v.Num < 0 {
		return fmt.Errorf("%s is no number from 0 on", v.Raw)
	}
	return nil
}

func whole(v gjson.Result) error {
	if err := number(v); err != nil || v.Num != float64(int64(v.Num)) {
		return fmt.Errorf("%s is no whole number from 0 on", v.Raw)
	}
	return nil
}

func fraction(v gjson.Result) error {
	if err := number(v); err != nil || v.Num > 1 {
		return fmt.Errorf("%s is no number from 0 to 1", v.Raw)
	}
	return nil
}

func oneOf(words ...string) check {
	return func(v gjson.Result) error {
		if v.Type != gjson.String || !slices.Contains(words, v.Str) {
			return fmt.Errorf("%s is none of %v", v.Raw, words)
		}
		return nil
	}
}

func anyObject(v gjson.Result) error {
	if !v.IsObject() {
		return fmt.Errorf("%s is no object", v.Raw)
	}
	return nil
}

// orNull allows null besides what is checked.
func orNull(ok check) check {
	return func(v gjson.Result) error {
		if v.Type == gjson.Null && v.Raw != "" {
			return nil
		}
		return ok(v)
	}
}

// arrayOf checks each element of an array.
func arrayOf(ok check) check {
	return func(v gjson.Result) error {
		if !v.IsArray() {
			return fmt.Errorf("%s is no array", v.Raw)
		}
		for i, element := range v.Array() {
			if err := ok(element); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
		return nil
	}
}

func boolean(v gjson.Result) error {
	if !v.IsBool() {
		return fmt.Errorf("%s is no boolean", v.Raw)
	}
	return nil
}

func anyNumber(v gjson.Result) error {
	if v.Type != gjson.Number {
		return fmt.Errorf("%s is no number", v.Raw)
	}
	return nil
}

func stringOrObject(v gjson.Result) error {
	if v.IsObject() {
		return nil
	}
	return filled(v)
}
