package harness

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/tidwall/gjson"
)

// ResponseEvent is an event of the stream of POST /v1/responses.
type ResponseEvent struct {
	Type string
	Data gjson.Result // its JSON
	Raw  string       // as it was sent, with the empty line that ends it
}

const doneFrame = "data: [DONE]"

// parseResponse splits a stream into its events, of two lines each and an empty one. There may be comments between them. isDone
// says that [DONE] is the last thing in it.
func parseResponse(raw string) (events []ResponseEvent, isDone bool, err error) {
	for rest := raw; rest != ""; {
		block, after, whole := strings.Cut(rest, "\n\n")
		switch rest = after; {
		case !whole:
			return events, false, fmt.Errorf("event %d is cut short: %q", len(events), block)
		case isDone:
			return events, false, fmt.Errorf("%q comes after [DONE]", block)
		case strings.HasPrefix(block, ":") && !strings.Contains(block, "\n"):
			continue
		case block == doneFrame:
			isDone = true
			continue
		}
		ev, err := parseResponseEvent(block)
		if err != nil {
			return events, false, fmt.Errorf("event %d: %w: %q", len(events), err, block)
		}
		events = append(events, ev)
	}
	return events, isDone, nil
}

func parseResponseEvent(block string) (ResponseEvent, error) {
	ev := ResponseEvent{Raw: block + "\n\n"}
	first, second, _ := strings.Cut(block, "\n")
	name, hasName := strings.CutPrefix(first, "event: ")
	data, hasData := strings.CutPrefix(second, "data: ")
	if !hasName || !hasData || strings.ContainsAny(data, "\n\r") {
		return ev, errors.New("not a line of its name, and one of its data")
	}
	if !gjson.Valid(data) {
		return ev, errors.New("the data is not JSON")
	}
	ev.Type, ev.Data = name, gjson.Parse(data)
	if got := ev.Data.Get("type"); got.Str != name {
		return ev, fmt.Errorf("the type is %s", got.Raw)
	}
	fields, ok := responseFields[name]
	if !ok {
		return ev, errors.New("there is no such event")
	}
	fields = maps.Clone(fields)
	fields["type"], fields["sequence_number"] = text, whole
	return ev, fields.check(ev.Data)
}

// withResponse, withItem, inItem and inPart are the fields that events of a kind have in common.
func withResponse() shape { return shape{"response": responseObject} }

func withItem() shape { return shape{"output_index": whole, "item": responseItem} }

func inItem(more shape) shape {
	fields := shape{"item_id": filled, "output_index": whole}
	maps.Copy(fields, more)
	return fields
}

func inPart(more shape) shape {
	fields := inItem(shape{"content_index": whole})
	maps.Copy(fields, more)
	return fields
}

// responseFields are the fields of each event, besides its type and its number. Strict clients fail on any other event.
var responseFields = map[string]shape{
	"response.created":                       withResponse(),
	"response.queued":                        withResponse(),
	"response.in_progress":                   withResponse(),
	"response.completed":                     withResponse(),
	"response.incomplete":                    withResponse(),
	"response.failed":                        withResponse(),
	"response.output_item.added":             withItem(),
	"response.output_item.done":              withItem(),
	"response.content_part.added":            inPart(shape{"part": responsePart}),
	"response.content_part.done":             inPart(shape{"part": responsePart}),
	"response.output_text.delta":             inPart(shape{"delta": filled, "logprobs": logprobs}),
	"response.output_text.done":              inPart(shape{"text": text, "logprobs": logprobs}),
	"response.reasoning_text.delta":          inPart(shape{"delta": filled}),
	"response.reasoning_text.done":           inPart(shape{"text": text}),
	"response.function_call_arguments.delta": inItem(shape{"delta": filled}),
	"response.function_call_arguments.done":  inItem(shape{"name": filled, "arguments": text}),
	"response.custom_tool_call_input.delta":  inItem(shape{"delta": filled}),
	"response.custom_tool_call_input.done":   inItem(shape{"input": text}),
	"response.mcp_list_tools.in_progress":    inItem(nil),
	"response.mcp_list_tools.completed":      inItem(nil),
	"response.mcp_list_tools.failed":         inItem(nil),
	"response.mcp_call.in_progress":          inItem(nil),
	"response.mcp_call.completed":            inItem(nil),
	"response.mcp_call.failed":               inItem(nil),
	"response.mcp_call_arguments.delta":      inItem(shape{"delta": filled}),
	"response.mcp_call_arguments.done":       inItem(shape{"arguments": text}),
	"error":                                  {"error": responseFault},
}
