package harness

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// NativeEvent is an event of the native chat's stream.
type NativeEvent struct {
	Type string
	Data gjson.Result // its JSON
}

// parseNative splits a stream into its events: two lines each, and an empty one. There may be comments between them.
func parseNative(raw string) ([]NativeEvent, error) {
	var events []NativeEvent
	for rest := raw; rest != ""; {
		block, after, whole := strings.Cut(rest, "\n\n")
		if !whole {
			return nil, fmt.Errorf("event %d is cut short: %q", len(events)+1, block)
		}
		rest = after
		if strings.HasPrefix(block, ":") && !strings.Contains(block, "\n") {
			continue
		}
		ev, err := parseNativeEvent(block)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w: %q", len(events)+1, err, block)
		}
		events = append(events, ev)
	}
	return events, nil
}

func parseNativeEvent(block string) (NativeEvent, error) {
	var ev NativeEvent
	first, second, _ := strings.Cut(block, "\n")
	name, hasName := strings.CutPrefix(first, "event: ")
	data, hasData := strings.CutPrefix(second, "data: ")
	if !hasName || !hasData || strings.ContainsAny(data, "\n\r") {
		return ev, errors.New("not a line of its name, and one of its data")
	}
	if !gjson.Valid(data) {
		return ev, errors.New("the data is not JSON")
	}
	ev = NativeEvent{name, gjson.Parse(data)}
	if got := ev.Data.Get("type"); got.Str != name {
		return ev, fmt.Errorf("the type is %s", got.Raw)
	}
	fields, ok := nativeFields[name]
	if !ok {
		return ev, errors.New("there is no such event")
	}
	fields = maps.Clone(fields)
	fields["type"] = text
	return ev, fields.check(ev.Data)
}

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
