package harness

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// fresh are the members of an item that fill while it is open, as it begins.
var fresh = map[string]map[string]any{
	"message":          {"content": []any{}, "status": "in_progress"},
	"reasoning":        {"content": []any{}, "status": "in_progress"},
	"function_call":    {"arguments": "", "status": "in_progress"},
	"custom_tool_call": {"input": "", "status": "in_progress"},
	"mcp_list_tools":   {"tools": []any{}},
	"mcp_call":         {"arguments": "", "status": "in_progress", "output": nil, "error": nil},
}

// steps are the events within each type of item, in their order. A delta may be absent, or be there many times.
var steps = map[string][]string{
	"message":          {"content_part.added", "output_text.delta", "output_text.done", "content_part.done"},
	"reasoning":        {"content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done"},
	"function_call":    {"function_call_arguments.delta", "function_call_arguments.done"},
	"custom_tool_call": {"custom_tool_call_input.delta", "custom_tool_call_input.done"},
	"mcp_list_tools":   {"mcp_list_tools.in_progress", "mcp_list_tools.end"},
	"mcp_call":         {"mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done", "mcp_call.end"},
}

// openItem is an item of a stream.
type openItem struct {
	added   gjson.Result
	done    gjson.Result // doesn't exist while the item is open
	kind    string
	steps   []string // that are still to come
	said    strings.Builder
	outcome string // of an MCP server: completed or failed
}

// inItem takes an event of an item.
func (g *responseGrammar) inItem(ev ResponseEvent, family, stage string) error {
	n := int(ev.Data.Get("output_index").Int())
	if family == "output_item" && stage == "added" {
		if n != len(g.items) {
			return fmt.Errorf("the output_index should be %d", len(g.items))
		}
		return g.opens(ev.Data.Get("item"))
	}
	if n >= len(g.items) || g.items[n].done.Exists() {
		return fmt.Errorf("item %d isn't open", n)
	}
	o := g.items[n]
	if family == "output_item" {
		return o.closes(ev.Data.Get("item"))
	}
	if id, own := ev.Data.Get("item_id").Str, o.added.Get("id").Str; id != own {
		return fmt.Errorf("of the item %s, where %s is open", id, own)
	}
	name := family + "." + stage
	if (family == "mcp_call" || family == "mcp_list_tools") && stage != "in_progress" {
		o.outcome, name = stage, family+".end"
	}
	return o.take(name, ev.Data)
}

func (g *responseGrammar) opens(item gjson.Result) error {
	kind := item.Get("type").Str
	for _, o := range g.items {
		if !o.done.Exists() && !o.isCall() {
			return fmt.Errorf("%s is still open", o.kind)
		}
	}
	for name, want := range fresh[kind] {
		if diff := gocmp.Diff(want, item.Get(name).Value()); diff != "" {
			return fmt.Errorf("%s at the beginning (-want +got):\n%s", name, diff)
		}
	}
	g.items = append(g.items, &openItem{added: item, kind: kind, steps: steps[kind]})
	return nil
}

// isCall reports whether other items may come before this one has ended.
func (o *openItem) isCall() bool {
	return o.kind == "function_call" || o.kind == "custom_tool_call" || o.kind == "mcp_call"
}

// take takes an event within the item.
func (o *openItem) take(name string, data gjson.Result) error {
	for len(o.steps) > 0 && o.steps[0] != name && strings.HasSuffix(o.steps[0], ".delta") {
		o.steps = o.steps[1:]
	}
	if len(o.steps) == 0 || o.steps[0] != name {
		return fmt.Errorf("of %s, %v should come", o.kind, o.steps)
	}
	if strings.HasSuffix(name, ".delta") {
		o.said.WriteString(data.Get("delta").Str)
		return nil
	}
	o.steps = o.steps[1:]
	switch {
	case name == "content_part.added":
		if data.Get("part.text").Str != "" {
			return errors.New("the part isn't empty")
		}
		return o.part(data)
	case name == "content_part.done":
		return errors.Join(o.part(data), o.all(data.Get("part.text").Str))
	case strings.HasSuffix(name, "_text.done"):
		return o.all(data.Get("text").Str)
	case strings.HasSuffix(name, "_arguments.done"):
		if called := data.Get("name"); called.Exists() && called.Str != o.added.Get("name").Str {
			return fmt.Errorf("the call is of %s", o.added.Get("name").Str)
		}
		return o.all(data.Get("arguments").Str)
	}
	return nil
}

// part checks that a part belongs to the item.
func (o *openItem) part(data gjson.Result) error {
	want := map[string]string{"message": "output_text", "reasoning": "reasoning_text"}[o.kind]
	if kind := data.Get("part.type").Str; kind != want || data.Get("content_index").Int() != 0 {
		return fmt.Errorf("part %s is %s", data.Get("content_index").Raw, kind)
	}
	return nil
}

// all checks a whole text against its pieces.
func (o *openItem) all(whole string) error {
	switch {
	case whole != o.said.String():
		return fmt.Errorf("the pieces were %q", o.said.String())
	case whole == "" && o.kind == "reasoning":
		return errors.New("nothing was thought")
	}
	return nil
}

func (o *openItem) closes(item gjson.Result) error {
	if len(o.steps) > 0 {
		return fmt.Errorf("%v should come before", o.steps)
	}
	was, is := o.added.Value().(map[string]any), item.Value().(map[string]any)
	for name := range fresh[o.kind] {
		delete(was, name)
		delete(is, name)
	}
	delete(is, "encrypted_content")
	if o.kind == "mcp_list_tools" {
		delete(is, "error")
	}
	if diff := gocmp.Diff(was, is); diff != "" {
		return fmt.Errorf("the item isn't as it was added (-added +done):\n%s", diff)
	}
	var err error
	switch o.kind {
	case "message", "reasoning":
		if n := len(item.Get("content").Array()); n != 1 {
			return fmt.Errorf("the item has %d parts", n)
		}
		err = o.all(item.Get("content.0.text").Str)
	case "function_call", "mcp_call":
		err = o.all(item.Get("arguments").Str)
	case "custom_tool_call":
		err = o.all(item.Get("input").Str)
	}
	o.done = item
	return cmp.Or(err, o.ending(item))
}

// ending checks how an item ended.
func (o *openItem) ending(item gjson.Result) error {
	status := cmp.Or(item.Get("status").Str, "completed")
	isWrong := item.Get("error").Exists() && item.Get("error").Type != gjson.Null
	switch {
	case status == "in_progress" || status == "calling":
		return fmt.Errorf("it is %s at its end", status)
	case o.kind == "mcp_call" && status == "incomplete" && o.outcome == "failed" && !isWrong: // there is no result
	case o.kind == "mcp_call" && (status != o.outcome || isWrong != (status == "failed")):
		return fmt.Errorf("the call has %s: %s", o.outcome, item.Raw)
	case o.kind == "mcp_call" && status == "completed" && item.Get("output").Type != gjson.String:
		return errors.New("a completed call has an output")
	case o.kind == "mcp_list_tools" && isWrong && o.outcome == "completed":
		return errors.New("a completed list has no error")
	}
	return nil
}
