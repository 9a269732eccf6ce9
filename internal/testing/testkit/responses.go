package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// ResponsesProblems returns what is wrong with a stream of the Responses API: its frames, the numbers of its events, their order, the
// items and parts that they refer to, and the output at its end, which must be what the events have said.
func ResponsesProblems(stream []byte) []string {
	c := responsesCheck{open: map[int]*responsesItem{}}
	frames, isDone := strings.CutSuffix(string(stream), "data: [DONE]\n\n")
	if !isDone {
		c.complain("the stream doesn't end in [DONE]")
	}
	for frame := range strings.SplitSeq(strings.TrimSuffix(frames, "\n\n"), "\n\n") {
		name, data, ok := strings.Cut(strings.TrimPrefix(frame, "event: "), "\ndata: ")
		if !ok || strings.Contains(data, "\n") || !gjson.Valid(data) || gjson.Get(data, "type").Str != name {
			c.complain("no event: %q", frame)
			continue
		}
		c.event(name, gjson.Parse(data))
	}
	if !c.isOver {
		c.complain("there is no last event")
	}
	return c.problems
}

// responsesCheck is the state of a check.
type responsesCheck struct {
	problems []string
	events   int
	phase    string // the last event with a response
	isOver   bool
	isFault  bool // there was an event "error"
	items    []*responsesItem
	open     map[int]*responsesItem
}

// responsesItem is an item that was added.
type responsesItem struct {
	kind, id string
	part     string // the kind of its open part
	parts    int
	text     string // of the part, or the arguments
	stage    int    // of a call or list: 1 in progress, 2 with arguments, 3 ended
	done     string // as JSON
}

// isOfClient reports whether the item is a call of a tool that the client runs.
func (i *responsesItem) isOfClient() bool {
	return i.kind == "function_call" || i.kind == "custom_tool_call"
}

// argument is the member with what a call gives to its tool.
func (i *responsesItem) argument() string {
	if i.kind == "custom_tool_call" {
		return "input"
	}
	return "arguments"
}

func (c *responsesCheck) complain(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf("event %d: ", c.events-1)+fmt.Sprintf(format, args...))
}

// after are the events with a response that may follow each of them.
var after = map[string][]string{
	"":                     {"response.created"},
	"response.created":     {"response.queued", "response.in_progress"},
	"response.queued":      {"response.in_progress"},
	"response.in_progress": {"response.completed", "response.incomplete", "response.failed"},
}

func (c *responsesCheck) event(name string, v gjson.Result) {
	c.events++
	if got := v.Get("sequence_number"); got.Type != gjson.Number || got.Raw != fmt.Sprint(c.events-1) {
		c.complain("%s has the number %s", name, got.Raw)
	}
	if c.isOver {
		c.complain("%s after the last event", name)
	}
	switch {
	case v.Get("response").Exists():
		c.response(name, v.Get("response"))
		return
	case c.phase != "response.in_progress":
		c.complain("%s after %q", name, c.phase)
	}
	if c.isFault {
		c.complain("%s after an error", name)
	}
	if name == "error" {
		c.isFault = true
		if e := v.Get("error"); e.Get("message").Str == "" || e.Get("type").Str == "" || !e.Get("code").Exists() || !e.Get("param").Exists() {
			c.complain("the error is %s", e.Raw)
		}
		return
	}
	index := int(v.Get("output_index").Int())
	if name == "response.output_item.added" {
		c.added(index, v)
		return
	}
	item := c.open[index]
	if item == nil || !v.Get("output_index").Exists() {
		c.complain("%s of the item %s, which is not open", name, v.Get("output_index").Raw)
		return
	}
	if name == "response.output_item.done" {
		c.done(index, item, v)
		return
	}
	if v.Get("item_id").Str != item.id {
		c.complain("%s has the id %q, not %q", name, v.Get("item_id").Str, item.id)
	}
	c.step(name, item, v)
}

func (c *responsesCheck) response(name string, response gjson.Result) {
	if !slices.Contains(after[c.phase], name) {
		c.complain("%s after %q", name, c.phase)
	}
	c.phase = name
	status, output := response.Get("status").Str, response.Get("output")
	if !output.IsArray() || response.Get("object").Str != "response" || !response.Get("tools").IsArray() {
		c.complain("%s has no whole response", name)
	}
	c.isOver = !slices.Contains([]string{"response.created", "response.queued", "response.in_progress"}, name)
	if !c.isOver {
		if len(output.Array()) > 0 || response.Get("usage").Type != gjson.Null || (status == "queued") == (name == "response.in_progress") && status == "queued" {
			c.complain("%s has the status %s and the output %s", name, status, output.Raw)
		}
		return
	}
	if want := strings.TrimPrefix(name, "response."); status != want && (status != "cancelled" || want != "failed") {
		c.complain("%s has the status %s", name, status)
	}
	if c.isFault != (status == "failed") || c.isFault != response.Get("error").IsObject() {
		c.complain("%s, and an event with an error: %t", name, c.isFault)
	}
	if (status == "incomplete") != response.Get("incomplete_details").IsObject() || !response.Get("usage").IsObject() {
		c.complain("%s lacks details or the usage", name)
	}
	if len(c.open) > 0 {
		c.complain("%d items are open at the end", len(c.open))
	}
	c.compare(output.Array())
}

// compare compares the output at the end with the items that were told.
func (c *responsesCheck) compare(output []gjson.Result) {
	if len(output) != len(c.items) {
		c.complain("the output has %d items, but %d were told", len(output), len(c.items))
		return
	}
	ids := map[string]bool{}
	for i, item := range output {
		if item.Raw != c.items[i].done {
			c.complain("item %d is %s, but was told as %s", i, item.Raw, c.items[i].done)
		}
		ids[item.Get("id").Str] = true
	}
	if len(ids) != len(output) {
		c.complain("ids are used twice")
	}
}

// added notes a new item, which must be empty.
func (c *responsesCheck) added(index int, v gjson.Result) {
	item := v.Get("item")
	if index != len(c.items) || !v.Get("output_index").Exists() {
		c.complain("an item is added as number %d, not %d", index, len(c.items))
		return
	}
	added := &responsesItem{kind: item.Get("type").Str, id: item.Get("id").Str}
	for _, empty := range []string{"content", "tools", "arguments", "input"} {
		if raw := item.Get(empty).Raw; raw != "" && raw != "[]" && raw != `""` {
			c.complain("the item is added with %s", raw)
		}
	}
	for _, other := range c.open {
		if other.part != "" {
			c.complain("an item is added while a part is open")
		}
	}
	if added.kind != "mcp_list_tools" && item.Get("status").Str != "in_progress" || added.id == "" {
		c.complain("the item is added as %s", item.Raw)
	}
	c.items = append(c.items, added)
	c.open[index] = added
}

func (c *responsesCheck) done(index int, item *responsesItem, v gjson.Result) {
	got := v.Get("item")
	if got.Get("id").Str != item.id || got.Get("type").Str != item.kind {
		c.complain("another item is done: %s", got.Raw)
	}
	status := got.Get("status").Str
	text, isComplete := item.text, item.part == "" && item.stage == 0 && item.parts == 1
	switch item.kind {
	case "message", "reasoning":
		if got.Get("content.0.text").Str != text || len(got.Get("content").Array()) != 1 {
			c.complain("the text is %s, but %q was told", got.Get("content").Raw, text)
		}
	case "function_call", "custom_tool_call", "mcp_call":
		isComplete = item.stage == 3 || item.isOfClient() && item.stage == 2
		if told := got.Get(item.argument()).Str; told != text {
			c.complain("the arguments are %q, but %q were told", told, text)
		}
	default:
		isComplete, status = item.stage == 3, "completed"
	}
	if !isComplete || status != "completed" && status != "incomplete" && status != "failed" {
		c.complain("an item is done too early, or is not: %s", got.Raw)
	}
	item.done = got.Raw
	delete(c.open, index)
}

// step checks an event within an item.
func (c *responsesCheck) step(name string, item *responsesItem, v gjson.Result) {
	needs := func(ok bool) {
		if !ok {
			c.complain("%s of a %s: part %q, stage %d", name, item.kind, item.part, item.stage)
		}
	}
	switch text := map[string]string{"message": "output_text", "reasoning": "reasoning_text"}[item.kind]; name {
	case "response.content_part.added":
		needs(text != "" && item.parts == 0 && v.Get("part.type").Str == text && v.Get("part.text").Str == "" && v.Get("content_index").Raw == "0")
		item.part, item.parts = text, item.parts+1
	case "response." + text + ".delta":
		needs(item.part == text && v.Get("delta").Type == gjson.String && v.Get("content_index").Raw == "0")
		needs(item.kind != "message" || v.Get("logprobs").IsArray())
		item.text += v.Get("delta").Str
	case "response." + text + ".done":
		needs(item.part == text && v.Get("text").Str == item.text)
		needs(item.kind != "message" || v.Get("logprobs").IsArray())
		item.part = "done " + text
	case "response.content_part.done":
		needs(item.part == "done "+text && v.Get("part.text").Str == item.text && v.Get("part.type").Str == text)
		item.part = ""
	case "response." + item.kind + ".in_progress":
		needs(item.stage == 0 && !item.isOfClient())
		item.stage = 1
	case "response." + item.kind + "_" + item.argument() + ".delta":
		needs((item.stage == 1 || item.isOfClient() && item.stage == 0) && v.Get("delta").Type == gjson.String)
		item.text += v.Get("delta").Str
	case "response." + item.kind + "_" + item.argument() + ".done":
		needs((item.stage == 1 || item.isOfClient() && item.stage == 0) && v.Get(item.argument()).Str == item.text)
		needs(item.kind != "function_call" || v.Get("name").Str != "")
		item.stage = 2
	case "response." + item.kind + ".completed", "response." + item.kind + ".failed":
		needs(item.kind == "mcp_call" && item.stage == 2 || item.kind == "mcp_list_tools" && item.stage == 1)
		item.stage = 3
	default:
		c.complain("%s of a %s is unknown", name, item.kind)
	}
}

// ResponsesEvents returns the data of each event of a stream.
func ResponsesEvents(stream []byte) (events []json.RawMessage) {
	for line := range bytes.Lines(stream) {
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: ")); ok && string(data) != "[DONE]" {
			events = append(events, data)
		}
	}
	return events
}
