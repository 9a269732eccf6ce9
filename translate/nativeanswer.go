package translate

import (
	"encoding/json"
	"strings"
	"time"
)

// NativeAnswer gathers what the native chat answers, of one upstream request or of several rounds.
type NativeAnswer struct {
	Instance   string // that answers
	ResponseID string // under which it is stored; empty: it isn't

	items   []nativeOutput
	open    bool // the last item may go on
	load    *float64
	tally   Tally
	usage   Usage // of the last round, but for what is generated: that is the sum
	timings Timings
	first   time.Duration // until the first token; 0: unknown
	rounds  int           // that are over
	reason  FinishReason
}

// nativeOutput is an item of the specification's "Chat output item (v1)".
type nativeOutput struct {
	kind ItemKind
	text strings.Builder
}

type (
	nativeResult struct {
		Instance   string            `json:"model_instance_id"`
		Output     []json.RawMessage `json:"output"`
		Stats      nativeStats       `json:"stats"`
		ResponseID string            `json:"response_id,omitempty"`
	}
	nativeText struct {
		Type    ItemKind `json:"type"`
		Content string   `json:"content"`
	}
	// nativeStats is the specification's "Chat stats (v1)".
	nativeStats struct {
		Input      int      `json:"input_tokens"`
		Output     int      `json:"total_output_tokens"`
		Reasoning  int      `json:"reasoning_output_tokens"`
		PerSecond  float64  `json:"tokens_per_second"`
		FirstToken float64  `json:"time_to_first_token_seconds"`
		Load       *float64 `json:"model_load_time_seconds,omitempty"`
	}
)

// Add gathers an event.
func (a *NativeAnswer) Add(ev Event) {
	a.tally.Add(ev)
	switch ev := ev.(type) {
	case Round:
		if ev.Number == 1 { // perhaps once more: what an engine said that has ended doesn't count
			*a = NativeAnswer{Instance: a.Instance, load: a.load}
		}
	case Load:
		if ev.Phase == PhaseEnd {
			a.load = &ev.Seconds
		}
	case Reasoning:
		a.extend(ItemReasoning, ev.Text)
	case Text:
		a.extend(ItemMessage, ev.Text)
	case Usage:
		ev.Completion += a.usage.Completion
		ev.Reasoning += a.usage.Reasoning
		a.usage = ev
	case Timings:
		a.time(ev)
	case FirstToken:
		if a.first == 0 {
			a.first = ev.After
		}
	case Finish:
		a.open, a.reason = false, ev.Reason
	case Fault:
		a.open = false
	}
}

func (a *NativeAnswer) extend(kind ItemKind, text string) {
	if n := len(a.items); n == 0 || !a.open || a.items[n-1].kind != kind {
		a.items = append(a.items, nativeOutput{kind: kind})
		a.open = true
	}
	a.items[len(a.items)-1].text.WriteString(text)
}

// time adds a round's measurements. How long the first token took is the first round's.
func (a *NativeAnswer) time(t Timings) {
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
func (a *NativeAnswer) IsEmpty() bool { return len(a.items) == 0 }

// IsComplete tells whether the answer ran to its end, and not into a limit or a fault.
func (a *NativeAnswer) IsComplete() bool { return a.reason != "" && a.reason != FinishLength }

// Usage is the tokens that it took: as the engine counts, once it has told, else by what was seen.
func (a *NativeAnswer) Usage() Usage {
	u := a.usage
	if u == (Usage{}) {
		u = a.tally.Usage()
	}
	u.Reasoning = min(u.Reasoning, u.Completion)
	return u
}

// Used is Usage also of an answer that never came to its end: then it is what was seen.
func (a *NativeAnswer) Used() Usage { return a.tally.Usage() }

// Items are what was generated, as a conversation keeps it.
func (a *NativeAnswer) Items() []Item {
	items := make([]Item, 0, len(a.items))
	for i := range a.items {
		item := Item{Kind: a.items[i].kind, Parts: []Part{{Text: a.items[i].text.String()}}}
		if item.Kind == ItemMessage {
			item.Role = RoleAssistant
		}
		items = append(items, item)
	}
	return items
}

// AppendBody appends the answer's body, which is also the result at the end of its stream.
func (a *NativeAnswer) AppendBody(dst []byte) []byte {
	usage := a.Usage()
	return appendJSON(dst, nativeResult{
		Instance: a.Instance, Output: NativeOutput(a.Items()), ResponseID: a.ResponseID,
		Stats: nativeStats{
			Input: usage.Prompt, Output: usage.Completion, Reasoning: usage.Reasoning,
			PerSecond: a.timings.rate(usage.Completion), FirstToken: seconds(waited(a.first, &a.timings) * 1000), Load: a.load,
		},
	})
}

// NativeOutput makes of what was generated the items of the native API, each as JSON.
func NativeOutput(items []Item) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(items))
	for i := range items {
		out = append(out, appendJSON(nil, nativeText{items[i].Kind, joinTexts(items[i].Parts)}))
	}
	return out
}

// seconds makes of milliseconds what is told of them: three decimals.
func seconds(millis float64) float64 {
	return time.Duration(millis * float64(time.Millisecond)).Round(time.Millisecond).Seconds()
}
