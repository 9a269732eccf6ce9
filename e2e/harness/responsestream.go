package harness

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// ResponseStream is a whole stream of POST /v1/responses.
type ResponseStream struct {
	Events []ResponseEvent
	Fault  gjson.Result // the error object of the error event; it doesn't exist without a failure
	Final  gjson.Result // the response of the last event
}

// CheckResponse checks a whole stream: the fields of each event, their numbers, and their order, which is
//
//	created queued? in_progress
//	  (output_item.added … output_item.done)*
//	(completed | incomplete | error? failed) [DONE]
//
// where the prefix response. is left out, failed has no error before it if the response was cancelled, and … is, by the type of
// the item,
//
//	message         content_part.added output_text.delta* output_text.done content_part.done
//	reasoning       content_part.added reasoning_text.delta+ reasoning_text.done content_part.done
//	function_call   function_call_arguments.delta* function_call_arguments.done
//	custom_tool_call  custom_tool_call_input.delta* custom_tool_call_input.done
//	mcp_list_tools  mcp_list_tools.in_progress (mcp_list_tools.completed | mcp_list_tools.failed)
//	mcp_call        mcp_call.in_progress mcp_call_arguments.delta* mcp_call_arguments.done (mcp_call.completed | mcp_call.failed)
//
// Messages, reasoning and lists come one after the other; calls may be open meanwhile. A failure closes what is open: its texts,
// its parts and its item, whose status is then incomplete. What the events tell of an item, piece by piece and as a whole, and
// what the response holds at the end, must be the same. The error is the first violation.
func CheckResponse(raw string) (*ResponseStream, error) {
	events, isDone, err := parseResponse(raw)
	if err != nil {
		return nil, err
	}
	var g responseGrammar
	for i, ev := range events {
		if err := g.take(i, ev); err != nil {
			return nil, fmt.Errorf("event %d, %s: %w", i, ev.Data.Raw, err)
		}
	}
	switch {
	case !g.final.Exists():
		return nil, errors.New("there is no end")
	case !isDone:
		return nil, errors.New("there is no [DONE]")
	}
	return &ResponseStream{events, g.fault, g.final}, nil
}

// Order is the names of the events without their prefix, with repetitions written once, with a plus. Items have their type.
func (s *ResponseStream) Order() string {
	var names []string
	for _, ev := range s.Events {
		name := strings.TrimPrefix(ev.Type, "response.")
		if name == "output_item.added" {
			name += ":" + ev.Data.Get("item.type").Str
		}
		switch last := len(names) - 1; {
		case !strings.HasSuffix(name, ".delta"):
			names = append(names, name)
		case names[last] != name+"+":
			names = append(names, name+"+")
		}
	}
	return strings.Join(names, " ")
}

// responseGrammar is the state of a stream.
type responseGrammar struct {
	created gjson.Result // the first response
	last    string       // the event before
	items   []*openItem  // by their index in the output, those that are done included
	fault   gjson.Result
	final   gjson.Result
}

func (g *responseGrammar) take(i int, ev ResponseEvent) error {
	before := g.last
	g.last = ev.Type
	family, stage, _ := strings.Cut(strings.TrimPrefix(ev.Type, "response."), ".")
	switch {
	case ev.Data.Get("sequence_number").Int() != int64(i):
		return fmt.Errorf("its number should be %d", i)
	case g.final.Exists():
		return errors.New("comes after the end")
	case (before == "") != (ev.Type == "response.created"):
		return errors.New("response.created comes first, and once")
	case g.fault.Exists() && family != "failed":
		return errors.New("only response.failed may follow an error")
	}
	switch family {
	case "created", "queued", "in_progress":
		return g.begins(ev.Data.Get("response"), family, before)
	case "completed", "incomplete", "failed":
		return g.ends(ev.Data.Get("response"), family)
	case "error":
		if err := g.allClosed(); err != nil {
			return err
		}
		g.fault = ev.Data.Get("error")
		return nil
	}
	if before == "response.created" || before == "response.queued" {
		return errors.New("comes before response.in_progress")
	}
	return g.inItem(ev, family, stage)
}

// begins takes an event before the output.
func (g *responseGrammar) begins(response gjson.Result, family, before string) error {
	status := response.Get("status").Str
	switch {
	case len(response.Get("output").Array()) > 0:
		return errors.New("the output isn't empty")
	case family == "created":
		g.created = response
		if status != "queued" && status != "in_progress" {
			return fmt.Errorf("the status is %s", status)
		}
		return nil
	case family != status:
		return fmt.Errorf("the status is %s", status)
	case family == "queued" && before != "response.created", family == "in_progress" && before != "response.created" && before != "response.queued":
		return fmt.Errorf("comes after %s", before)
	}
	return g.same(response)
}

// same checks that a response has the properties with which it was created, apart from those that change.
func (g *responseGrammar) same(response gjson.Result) error {
	was, is := g.created.Value().(map[string]any), response.Value().(map[string]any)
	for _, name := range []string{"status", "output", "usage", "error", "incomplete_details", "completed_at"} {
		delete(was, name)
		delete(is, name)
	}
	if diff := cmp.Diff(was, is); diff != "" {
		return fmt.Errorf("the response isn't as it was created (-created +now):\n%s", diff)
	}
	return nil
}

// allClosed checks that no item is open.
func (g *responseGrammar) allClosed() error {
	for _, o := range g.items {
		if !o.done.Exists() {
			return fmt.Errorf("the item %s is still open", o.added.Get("id").Str)
		}
	}
	return nil
}

// ends checks the last response against the events before it.
func (g *responseGrammar) ends(response gjson.Result, family string) error {
	if err := g.allClosed(); err != nil {
		return err
	}
	status := response.Get("status").Str
	isCancelled := family == "failed" && status == "cancelled"
	switch {
	case status != family && !isCancelled:
		return fmt.Errorf("the status is %s", status)
	case g.fault.Exists() == isCancelled && family == "failed":
		return fmt.Errorf("a response that is %s has the error event %q", status, g.fault.Raw)
	case status == "failed" && response.Get("error.message").Str != g.fault.Get("message").Str:
		return fmt.Errorf("the error was %s", g.fault.Raw)
	}
	told := []any{}
	for _, o := range g.items {
		told = append(told, o.done.Value())
	}
	if diff := cmp.Diff(any(told), response.Get("output").Value()); diff != "" {
		return fmt.Errorf("the output is not what was told (-told +output):\n%s", diff)
	}
	for _, item := range response.Get("output").Array() {
		if item.Get("status").Str == "incomplete" && status == "completed" {
			return fmt.Errorf("an item is incomplete: %s", item.Raw)
		}
	}
	if err := g.same(response); err != nil {
		return err
	}
	g.final = response
	return nil
}
