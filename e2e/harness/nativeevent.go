package harness

import (
	"errors"
	"fmt"
	"maps"
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
