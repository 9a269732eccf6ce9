package harness

import (
	"errors"
	"fmt"

	"github.com/tidwall/gjson"
)

// calls takes an event of a tool call: .start .arguments (.success | .failure), or only .failure for an unknown tool.
func (g *nativeGrammar) calls(ev NativeEvent, stage string) error {
	isBadName := ev.Data.Get("metadata.type").Str == "invalid_name"
	switch {
	case !g.maySpeak:
		return errors.New("comes before the prompt is processed")
	case stage == "start", isBadName:
		if g.open != "" {
			return fmt.Errorf("%s is still open", g.open)
		}
		g.open, g.deltas, g.call, g.isNewRound = "tool_call", 0, ev.Data, false
	case g.open != "tool_call":
		return errors.New("was not started")
	}
	switch stage {
	case "arguments":
		if g.deltas++; g.deltas > 1 {
			return errors.New("the arguments are told once")
		}
		return g.sameCall(ev.Data)
	case "success":
		if g.deltas == 0 {
			return errors.New("without arguments")
		}
		g.output = append(g.output, with(ev.Data, "tool_call"))
	case "failure":
		g.output = append(g.output, with(ev.Data, "invalid_tool_call"))
	default:
		return nil
	}
	g.open = ""
	if stage == "success" {
		return g.sameCall(ev.Data)
	}
	return nil
}

func (g *nativeGrammar) sameCall(data gjson.Result) error {
	for _, name := range []string{"tool", "provider_info"} {
		if got, want := data.Get(name).Raw, g.call.Get(name).Raw; got != want {
			return fmt.Errorf("%s is %s, where the call began with %s", name, got, want)
		}
	}
	return nil
}

// with returns an event's data as an item of another type.
func with(data gjson.Result, kind string) map[string]any {
	item := data.Value().(map[string]any)
	item["type"] = kind
	return item
}
