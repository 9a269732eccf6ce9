package native

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Answer gathers what the native chat answers, of one upstream request or of several rounds.
type Answer struct {
	Instance   string // that answers
	ResponseID string // under which it is stored; empty: it isn't

	items []*output
	open  bool // the last item may go on

	roundFrom int // of items: the first of the current round
	load      *float64
	tally     translate.Tally
	usage     translate.Usage // of the last round, but for what is generated: that is the sum
	timings   translate.Timings
	first     time.Duration // until the first token; 0: unknown
	rounds    int           // that are over
	reason    translate.FinishReason
}

// output is an item of the specification's "Chat output item (v1)".
type output struct {
	kind translate.ItemKind
	text strings.Builder
	call *call // of a call; else nil
}

type (
	result struct {
		Instance   string            `json:"model_instance_id"`
		Output     []json.RawMessage `json:"output"`
		Stats      stats             `json:"stats"`
		ResponseID string            `json:"response_id,omitempty"`
	}
	textItem struct {
		Type    translate.ItemKind `json:"type"`
		Content string             `json:"content"`
	}
	// stats is the specification's "Chat stats (v1)".
	stats struct {
		Input      int      `json:"input_tokens"`
		Output     int      `json:"total_output_tokens"`
		Reasoning  int      `json:"reasoning_output_tokens"`
		PerSecond  float64  `json:"tokens_per_second"`
		FirstToken float64  `json:"time_to_first_token_seconds"`
		Load       *float64 `json:"model_load_time_seconds,omitempty"`
	}
)

// Add gathers an event.
func (a *Answer) Add(ev translate.Event) {
	a.tally.Add(ev)
	switch ev := ev.(type) {
	case translate.Round:
		if ev.Number == 1 { // perhaps once more: what an engine said that has ended doesn't count
			*a = Answer{Instance: a.Instance, load: a.load}
		}
		a.open, a.roundFrom = false, len(a.items)
	case translate.Load:
		if ev.Phase == translate.PhaseEnd {
			a.load = &ev.Seconds
		}
	case translate.Reasoning:
		a.extend(translate.ItemReasoning, ev.Text)
	case translate.Text:
		a.extend(translate.ItemMessage, ev.Text)
	case translate.CallStart, translate.CallArgs, translate.CallResult, translate.CallInvalid:
		a.addCall(ev)
	case translate.Usage:
		ev.Completion += a.usage.Completion
		ev.Reasoning += a.usage.Reasoning
		a.usage = ev
	case translate.Timings:
		a.time(ev)
	case translate.FirstToken:
		if a.first == 0 {
			a.first = ev.After
		}
	case translate.Finish:
		a.open, a.reason = false, ev.Reason
	case translate.Fault:
		a.open = false
	}
}

func (a *Answer) extend(kind translate.ItemKind, text string) {
	if n := len(a.items); n == 0 || !a.open || a.items[n-1].kind != kind {
		a.items = append(a.items, &output{kind: kind})
		a.open = true
	}
	a.items[len(a.items)-1].text.WriteString(text)
}

// time adds a round's measurements. How long the first token took is the first round's.
func (a *Answer) time(t translate.Timings) {
	a.rounds++
	if a.rounds == 1 {
		a.timings = t
		return
	}
	sum := &a.timings
	tokens := sum.PredictedPerSecond*sum.PredictedMillis + t.PredictedPerSecond*t.PredictedMillis
	if sum.PredictedMillis += t.PredictedMillis; sum.PredictedMillis > 0 {
		sum.PredictedPerSecond = tokens / sum.PredictedMillis
	}
}

// IsEmpty tells whether nothing was generated.
func (a *Answer) IsEmpty() bool { return len(a.items) == 0 }

// IsComplete tells whether the answer ran to its end, and not into a limit or a fault.
func (a *Answer) IsComplete() bool { return a.reason != "" && a.reason != translate.FinishLength }

// Usage is the tokens that it took: as the engine counts, once it has told, else by what was seen.
func (a *Answer) Usage() translate.Usage {
	u := a.usage
	if u == (translate.Usage{}) {
		u = a.tally.Usage()
	}
	u.Reasoning = min(u.Reasoning, u.Completion)
	return u
}

// Used is Usage also of an answer that never came to its end: then it is what was seen.
func (a *Answer) Used() translate.Usage { return a.tally.Usage() }

// Items are what was generated, as a conversation keeps it.
func (a *Answer) Items() []translate.Item {
	items := make([]translate.Item, 0, len(a.items))
	for _, o := range a.items {
		if o.call != nil {
			items = append(items, o.call.item(o.kind))
			if o.kind == translate.ItemCall && o.call.result != nil {
				items = append(items, translate.Item{Kind: translate.ItemResult, CallID: o.call.id, Tool: o.call.tool, Parts: []translate.Part{{Text: *o.call.result}}})
			}
			continue
		}
		item := translate.Item{Kind: o.kind, Parts: []translate.Part{{Text: o.text.String()}}}
		if item.Kind == translate.ItemMessage {
			item.Role = translate.RoleAssistant
		}
		items = append(items, item)
	}
	return items
}

// AppendBody appends the answer's body, which is also the result at the end of its stream.
func (a *Answer) AppendBody(dst []byte) []byte {
	usage := a.Usage()
	return jsonbody.AppendJSON(dst, result{
		Instance: a.Instance, Output: Output(a.Items()), ResponseID: a.ResponseID,
		Stats: stats{
			Input: usage.Prompt, Output: usage.Completion, Reasoning: usage.Reasoning,
			PerSecond: a.timings.Rate(usage.Completion), FirstToken: seconds(translate.Waited(a.first, &a.timings) * 1000), Load: a.load,
		},
	})
}

// Output makes of what was generated the items of the native API, each as JSON.
func Output(items []translate.Item) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(items))
	for i := range items {
		switch item := &items[i]; item.Kind {
		case translate.ItemCall:
			output := "" // of a call that was never answered
			if i+1 < len(items) && items[i+1].Kind == translate.ItemResult && items[i+1].CallID == item.CallID {
				output = translate.JoinTexts(items[i+1].Parts)
			}
			out = append(out, jsonbody.AppendJSON(nil, toolCall{"tool_call", item.Tool, object(item.Args), &output, providerOf(item.Provider)}))
		case translate.ItemResult: // it is part of its call
		case translate.ItemInvalid:
			made := invalidOf(item)
			made.Type = "invalid_tool_call"
			out = append(out, jsonbody.AppendJSON(nil, made))
		default:
			out = append(out, jsonbody.AppendJSON(nil, textItem{item.Kind, translate.JoinTexts(item.Parts)}))
		}
	}
	return out
}

// seconds makes of milliseconds what is told of them: three decimals.
func seconds(millis float64) float64 {
	return time.Duration(millis * float64(time.Millisecond)).Round(time.Millisecond).Seconds()
}
