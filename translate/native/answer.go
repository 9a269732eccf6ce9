package native

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Answer gathers the answer of a chat, from one upstream request or several rounds.
type Answer struct {
	Instance   string // the instance that answers
	ResponseID string // id of the stored response; empty if it isn't stored

	ContextLength int // of the instance, in tokens

	items     []*output
	open      bool // the last item may continue
	round     int  // number of the current round
	roundFrom int  // index of its first item
	load      *float64
	tally     translate.RoundTally
	first     time.Duration // time to the first token; 0 if unknown
	reason    translate.FinishReason
}

// output is an item of the specification's "Chat output item (v1)".
type output struct {
	kind  translate.ItemKind
	round int
	text  strings.Builder
	call  *call // of a call; else nil
}

type (
	result struct {
		Instance   string            `json:"model_instance_id"`
		Output     []json.RawMessage `json:"output"`
		Stats      stats             `json:"stats"`
		ResponseID string            `json:"response_id,omitempty"`
		Status     string            `json:"status,omitempty"` // not in the specification: "incomplete" if a limit has cut the answer
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
		Context    int      `json:"context_length,omitempty"` // not in the specification
	}
)

// Add gathers an event. A Round with the number of the current one begins it again: what came of the first attempt doesn't
// count.
func (a *Answer) Add(ev translate.Event) {
	a.tally.Add(ev)
	switch ev := ev.(type) {
	case translate.Round:
		a.begin(ev.Number)
	case translate.Load:
		if ev.Phase == translate.PhaseEnd && a.load == nil {
			a.load = &ev.Seconds
		}
	case translate.Reasoning:
		a.extend(translate.ItemReasoning, ev.Text)
	case translate.Text:
		a.extend(translate.ItemMessage, ev.Text)
	case translate.CallStart, translate.CallArgs, translate.CallResult, translate.CallInvalid:
		a.addCall(ev)
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

func (a *Answer) begin(number int) {
	if number == a.round {
		a.items = a.items[:a.roundFrom]
	}
	if number <= 1 {
		a.first = 0
	}
	a.round, a.roundFrom = number, len(a.items)
	a.open, a.reason = false, ""
}

func (a *Answer) extend(kind translate.ItemKind, text string) {
	if n := len(a.items); n == 0 || !a.open || a.items[n-1].kind != kind {
		a.items = append(a.items, &output{kind: kind, round: a.round})
		a.open = true
	}
	a.items[len(a.items)-1].text.WriteString(text)
}

// IsEmpty reports whether nothing was generated.
func (a *Answer) IsEmpty() bool { return len(a.items) == 0 }

// RoundIsEmpty reports whether the current round has generated nothing.
func (a *Answer) RoundIsEmpty() bool { return len(a.items) == a.roundFrom }

// IsComplete reports whether the answer ended without reaching a limit or a fault.
func (a *Answer) IsComplete() bool { return a.reason != "" && a.reason != translate.FinishLength }

// Usage returns the usage as reported by the engine, or else as counted from the events: the prompt of the last round, and the
// generated tokens of all rounds.
func (a *Answer) Usage() translate.Usage { return a.tally.Usage() }

// Items returns the generated items for a conversation. The results of a round's calls follow all of them.
func (a *Answer) Items() []translate.Item {
	items := make([]translate.Item, 0, len(a.items))
	var results []translate.Item
	for i, o := range a.items {
		if i > 0 && o.round != a.items[i-1].round {
			items, results = append(items, results...), nil
		}
		if o.call != nil {
			items = append(items, o.call.item(o.kind))
			if result, ok := o.call.resultItem(o.kind); ok {
				results = append(results, result)
			}
			continue
		}
		item := translate.Item{Kind: o.kind, Parts: []translate.Part{{Text: o.text.String()}}}
		if item.Kind == translate.ItemMessage {
			item.Role = translate.RoleAssistant
		}
		items = append(items, item)
	}
	return append(items, results...)
}

// AppendBody appends the body of the answer, which is also the result at the end of a stream.
func (a *Answer) AppendBody(dst []byte) []byte {
	usage, figures, status := a.Usage(), a.Figures(), ""
	if a.reason == translate.FinishLength {
		status = "incomplete"
	}
	return jsonbody.AppendJSON(dst, result{
		Instance: a.Instance, Output: Output(a.Items()), ResponseID: a.ResponseID, Status: status,
		Stats: stats{
			Input: usage.Prompt, Output: usage.Completion, Reasoning: usage.Reasoning,
			PerSecond: figures.Rate, FirstToken: figures.FirstToken, Load: a.load, Context: figures.Context,
		},
	})
}

// Figures returns how fast the answer was, and how much context it had.
func (a *Answer) Figures() translate.Figures {
	timings := a.tally.Timings()
	return translate.Figures{
		Rate: timings.Rate(a.Usage().Completion), FirstToken: seconds(translate.Waited(a.first, &timings) * 1000), Context: a.ContextLength,
	}
}

// Output returns generated items as JSON.
func Output(items []translate.Item) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(items))
	for i := range items {
		switch item := &items[i]; item.Kind {
		case translate.ItemCall:
			output, isError := "", false // of a call that was never answered
			isResult := func(r translate.Item) bool { return r.Kind == translate.ItemResult && r.CallID == item.CallID }
			rest := items[i+1:]
			if k := slices.IndexFunc(rest, isResult); k >= 0 {
				output, isError = string(rest[k].Raw), rest[k].Status == translate.ItemFailed
			}
			made := toolCall{"tool_call", "", item.Tool, object(item.Args), &output, isError, providerOf(item.Provider)}
			out = append(out, jsonbody.AppendJSON(nil, made))
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

func seconds(millis float64) float64 {
	return time.Duration(millis * float64(time.Millisecond)).Round(time.Millisecond).Seconds()
}

// Errors writes errors in the format of the native API, v1 and v0.
type Errors struct{}

// Status returns the status of the error's kind.
func (Errors) Status(e *translate.Error) int { return e.Status() }

// AppendError appends {"error":{"type","message","code","param"}}, the last two unless they are empty.
func (Errors) AppendError(dst []byte, e *translate.Error, _ string) []byte {
	return jsonbody.AppendJSON(dst, errorBody{errorObjectOf(e)})
}

// AppendErrorObject appends only the inner object, for events of streams and for download jobs.
func AppendErrorObject(dst []byte, e *translate.Error) []byte {
	return jsonbody.AppendJSON(dst, errorObjectOf(e))
}

func errorObjectOf(e *translate.Error) errorObject {
	return errorObject{cmp.Or(errorTypes[e.Kind], "invalid_request"), e.Message, e.EffectiveCode(), e.Param}
}

// errorTypes are the types of errors other than "invalid_request".
var errorTypes = map[translate.Kind]string{
	translate.KindInternal:       "internal_error",
	translate.KindNotImplemented: "not_implemented",
	translate.KindModelNotFound:  "model_not_found",
	translate.KindEngineFailed:   "internal_error",
	translate.KindUnavailable:    "internal_error",
	translate.KindStalled:        "internal_error",
	translate.KindJobNotFound:    "job_not_found",
	translate.KindHubFailed:      "internal_error",
	translate.KindHubBusy:        "internal_error",
	translate.KindDiskFull:       "internal_error",
	translate.KindMCPFailed:      "mcp_connection_error",
	translate.KindPluginFailed:   "plugin_connection_error",
}

type (
	errorBody struct {
		Error errorObject `json:"error"`
	}
	errorObject struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
		Param   string `json:"param,omitempty"`
	}
)
