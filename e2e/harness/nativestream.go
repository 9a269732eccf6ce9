package harness

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// NativeStream is a stream of the native chat that follows the specification.
type NativeStream struct {
	Events []NativeEvent
	Fault  gjson.Result // the error object that ended the answer; it doesn't exist without a failure
	Result gjson.Result // that of chat.end

	ServerFaults []gjson.Result // error objects about MCP servers, after which the answer went on
}

// CheckNative checks a whole stream against the specification's grammar:
//
//	chat.start (model_load.start .progress* .end)?
//	  (prompt_processing.start .progress* .end (reasoning | message | tool call)*)*
//	  error? chat.end
//
// where reasoning and messages are .start .delta+ .end, and the prompt is processed again, once, after calls. A fault may end
// anything early, but must not leave it open, except for a load. The failure of an MCP server is told while its call is open,
// and ends nothing. The error is the first violation.
func CheckNative(raw string) (*NativeStream, error) {
	events, err := parseNative(raw)
	if err != nil {
		return nil, err
	}
	g := nativeGrammar{output: []any{}}
	for i, ev := range events {
		if err := g.take(ev); err != nil {
			return nil, fmt.Errorf("event %d, %s: %w", i+1, ev.Data.Raw, err)
		}
	}
	if !g.result.Exists() {
		return nil, errors.New("there is no chat.end")
	}
	return &NativeStream{events, g.fault, g.result, g.serverFaults}, nil
}

// Order is the events' names, with repetitions written once, with a plus. Progress events are left out, since their number
// varies.
func (s *NativeStream) Order() string {
	var names []string
	for _, ev := range s.Events {
		switch last := len(names) - 1; {
		case strings.HasSuffix(ev.Type, ".progress"):
		case strings.HasSuffix(ev.Type, ".delta"):
			if names[last] != ev.Type+"+" {
				names = append(names, ev.Type+"+")
			}
		default:
			names = append(names, ev.Type)
		}
	}
	return strings.Join(names, " ")
}

// Text is the text of all output items of a type.
func (s *NativeStream) Text(kind string) string { return NativeText(s.Result, kind) }

// NativeText is Text of a body.
func NativeText(body gjson.Result, kind string) string {
	var all strings.Builder
	for _, item := range body.Get("output").Array() {
		if item.Get("type").Str == kind {
			all.WriteString(item.Get("content").Str)
		}
	}
	return all.String()
}

// nativeGrammar is the state of a stream.
type nativeGrammar struct {
	last       string // the event before
	instance   string
	load       *float64 // the load time
	open       string   // what has started and hasn't ended: the prefix of its events' names, without the dot
	progress   float64  // of what is open
	prompted   bool     // the prompt has been processed
	isNewRound bool     // and nothing has come since
	maySpeak   bool     // no prompt processing has to come before
	deltas     int      // of what is open
	call       gjson.Result
	output     []any
	fault      gjson.Result
	result     gjson.Result

	serverFaults []gjson.Result
}

func (g *nativeGrammar) take(ev NativeEvent) error {
	before := g.last
	g.last = ev.Type
	family, stage, _ := strings.Cut(ev.Type, ".")
	switch {
	case g.result.Exists():
		return errors.New("comes after chat.end")
	case (before == "") != (ev.Type == "chat.start"):
		return errors.New("chat.start comes first, and once")
	case g.fault.Exists() && ev.Type != "chat.end":
		return errors.New("only chat.end may follow an error")
	}
	switch family {
	case "model_load":
		return g.loads(ev, stage, before)
	case "prompt_processing":
		return g.prompts(ev, stage)
	case "reasoning", "message":
		return g.speaks(ev, family, stage)
	case "tool_call":
		return g.calls(ev, stage)
	case "error":
		return g.fails(ev.Data.Get("error"))
	default:
		if stage == "start" {
			g.instance = ev.Data.Get("model_instance_id").Str
			return nil
		}
		return g.ends(ev.Data.Get("result"))
	}
}

func (g *nativeGrammar) fails(fault gjson.Result) error {
	if kind := fault.Get("type").Str; g.open == "tool_call" && (kind == "mcp_connection_error" || kind == "plugin_connection_error") {
		g.serverFaults = append(g.serverFaults, fault)
		return nil
	}
	if g.open != "" && g.open != "model_load" {
		return fmt.Errorf("%s is still open", g.open)
	}
	g.fault = fault
	return nil
}

func (g *nativeGrammar) loads(ev NativeEvent, stage, before string) error {
	if id := ev.Data.Get("model_instance_id").Str; id != g.instance {
		return fmt.Errorf("of %q, where the chat is %q's", id, g.instance)
	}
	if stage == "start" && before != "chat.start" {
		return errors.New("comes right after chat.start, or not at all")
	}
	err := g.stage("model_load", stage, ev)
	if err == nil && stage == "end" {
		seconds := ev.Data.Get("load_time_seconds").Num
		g.load = &seconds
	}
	return err
}

// stage takes an event of something that starts, progresses and ends.
func (g *nativeGrammar) stage(family, stage string, ev NativeEvent) error {
	if stage == "start" {
		if g.open != "" {
			return fmt.Errorf("%s is still open", g.open)
		}
		g.open, g.progress = family, 0
		return nil
	}
	if g.open != family {
		return errors.New("was not started")
	}
	if stage == "end" {
		g.open = ""
		return nil
	}
	progress := ev.Data.Get("progress").Num
	if progress < g.progress {
		return fmt.Errorf("it was %v already", g.progress)
	}
	g.progress = progress
	return nil
}

func (g *nativeGrammar) prompts(ev NativeEvent, stage string) error {
	if stage == "start" && g.maySpeak && (!strings.HasSuffix(g.lastItem(), "tool_call") || g.isNewRound) {
		return errors.New("the prompt is processed once, and again after a tool")
	}
	err := g.stage("prompt_processing", stage, ev)
	switch stage {
	case "start":
		g.maySpeak = false
	case "end":
		g.maySpeak, g.prompted, g.isNewRound = true, true, true
	}
	return err
}

// lastItem is the type of the newest item of the output.
func (g *nativeGrammar) lastItem() string {
	if len(g.output) == 0 {
		return ""
	}
	return g.output[len(g.output)-1].(map[string]any)["type"].(string)
}

func (g *nativeGrammar) speaks(ev NativeEvent, family, stage string) error {
	switch {
	case !g.maySpeak:
		return errors.New("comes before the prompt is processed")
	case stage == "start":
		if g.open != "" {
			return fmt.Errorf("%s is still open", g.open)
		}
		if strings.HasSuffix(g.lastItem(), "tool_call") && !g.isNewRound {
			return errors.New("the prompt is processed again before")
		}
		g.isNewRound = false
		g.open, g.deltas = family, 0
		g.output = append(g.output, map[string]any{"type": family, "content": ""})
		return nil
	case g.open != family:
		return errors.New("was not started")
	case stage == "delta":
		g.deltas++
		item := g.output[len(g.output)-1].(map[string]any)
		item["content"] = item["content"].(string) + ev.Data.Get("content").Str
		return nil
	case g.deltas == 0:
		return errors.New("nothing was said")
	}
	g.open = ""
	return nil
}

// ends checks chat.end against the events before it.
func (g *nativeGrammar) ends(result gjson.Result) error {
	seconds := result.Get("stats.model_load_time_seconds")
	switch {
	case g.open != "" && (g.open != "model_load" || !g.fault.Exists()):
		return fmt.Errorf("%s is still open", g.open)
	case !g.prompted && !g.fault.Exists():
		return errors.New("the prompt was not processed, and nothing is wrong")
	case seconds.Exists() != (g.load != nil), g.load != nil && seconds.Num != *g.load:
		return fmt.Errorf("model_load_time_seconds is %s", seconds.Raw)
	}
	if diff := cmp.Diff(any(g.output), result.Get("output").Value()); diff != "" {
		return fmt.Errorf("the output is not what was told (-told +output):\n%s", diff)
	}
	g.result = result
	return nil
}
