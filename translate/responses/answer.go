package responses

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Answer gathers the answer to a request, from one upstream request or several rounds.
type Answer struct {
	ID      string // "resp_…"
	Created time.Time
	Model   string // the instance that answers
	Request *Request
	Now     func() time.Time // the clock; nil: the system's

	outputs   []*output
	shown     int     // number of items in the output
	open      *output // message or thought that may continue
	held      string  // text that waits for its log probabilities
	round     int     // number of the current round
	roundFrom int     // index in outputs of its first item
	tally     translate.RoundTally
	reason    translate.FinishReason
	trouble   *translate.Error // failure of the server whose result comes next
	status    Status           // empty: in progress
	failure   *failure
	ended     time.Time
	stream    *Stream // that is told of each step; nil if there is none
}

// output is an item of the output, or a call of a tool that doesn't exist, which isn't shown.
type output struct {
	item    translate.Item
	index   int                 // in the output; -1 if it isn't shown
	text    strings.Builder     // of a message or thought; the arguments of a call
	probs   []byte              // log probabilities: an array without its closing bracket
	call    int                 // the engine's index of a call
	input   request.InputReader // of the call of a custom tool
	told    int                 // bytes of the input that the client has been sent
	result  *translate.Item     // of a call of an MCP tool
	isRound int                 // number of its round
	isReady bool                // the arguments of a call are complete, as far as is known
	isDone  bool
	isLeft  bool // left out: a second call of a client that wants one
}

func (o *output) isFunction() bool {
	return o.item.Kind == translate.ItemCall && o.item.Provider == nil
}

func (o *output) append(dst []byte) []byte {
	item, status := o.finalItem(), string(InProgress)
	if o.isDone {
		if status = string(Completed); item.Status != translate.ItemComplete {
			status = string(item.Status)
		}
	}
	return appendItem(dst, &item, o.result, status)
}

func (o *output) finalItem() translate.Item {
	item := o.item
	switch item.Kind {
	case translate.ItemMessage, translate.ItemReasoning:
		item.Parts = []translate.Part{{Text: o.text.String()}}
		if o.probs != nil {
			item.Raw = append(append([]byte{}, o.probs...), ']')
		}
	case translate.ItemCall, translate.ItemInvalid:
		if item.Provider != nil || item.Kind == translate.ItemCall {
			item.Args = asArguments(o.text.String())
		}
	}
	return item
}

// Queue marks the response as one that waits in the background.
func (a *Answer) Queue() { a.status = Queued }

// Add gathers an event. A Round with the number of the current one begins it again: what came of the first attempt doesn't
// count.
func (a *Answer) Add(ev translate.Event) {
	if a.isOver() {
		return
	}
	a.tally.Add(ev)
	switch ev.(type) {
	case translate.Round, translate.ToolList:
		a.status = "" // no longer queued
	}
	if probs, ok := ev.(translate.Logprobs); ok {
		a.flush(probs.Content)
		return
	}
	a.flush(nil)
	switch ev := ev.(type) {
	case translate.Round:
		a.begin(ev.Number)
	case translate.ToolList:
		a.closeOpen(translate.ItemComplete)
		o := &output{item: translate.Item{Kind: translate.ItemToolList, Provider: &translate.Provider{Server: ev.Server}}}
		a.show(o)
		status := translate.ItemComplete
		if o.item.Raw = ev.Tools; ev.Err != nil {
			status, o.item.Raw = translate.ItemFailed, nil
			o.item.Parts = []translate.Part{{Text: ev.Err.Message}}
		}
		a.finish(o, status)
	case translate.Reasoning:
		a.extend(translate.ItemReasoning, ev.Text, nil)
	case translate.Text:
		if a.Request != nil && a.Request.Chat.Logprobs {
			a.held = ev.Text
		} else {
			a.extend(translate.ItemMessage, ev.Text, nil)
		}
	case translate.CallStart, translate.CallArgs, translate.CallDone, translate.CallResult, translate.CallInvalid:
		a.addCall(ev)
	case translate.Trouble:
		a.trouble = ev.Err
	case translate.Finish:
		a.reason = ev.Reason
		a.closeRound(ev.Reason == translate.FinishLength)
	case translate.Fault:
		a.closeRound(true)
	}
}

func (a *Answer) begin(number int) {
	a.closeRound(true)
	if number == a.round {
		for _, o := range a.outputs[a.roundFrom:] {
			if o.index >= 0 {
				a.shown--
			}
		}
		a.outputs = a.outputs[:a.roundFrom]
	}
	a.round, a.roundFrom = number, len(a.outputs)
	a.reason, a.trouble = "", nil
}

func (a *Answer) flush(logprobs json.RawMessage) {
	text := a.held
	a.held = ""
	if text == "" {
		return
	}
	var probs []byte
	for _, token := range gjson.ParseBytes(logprobs).Array() {
		probs = jsonbody.AppendLogprob(append(probs, ','), token, a.Request.Chat.OnlyChosen, "[]")
	}
	a.extend(translate.ItemMessage, text, probs)
}

// extend adds to the open message or thought, or begins one. logprobs begin with a comma.
func (a *Answer) extend(kind translate.ItemKind, text string, logprobs []byte) {
	if text == "" {
		return
	}
	if a.open == nil || a.open.item.Kind != kind {
		a.closeOpen(translate.ItemComplete)
		o := &output{item: translate.Item{Kind: kind}}
		if kind == translate.ItemMessage {
			o.item.Role = translate.RoleAssistant
		}
		a.show(o)
		a.open = o
	}
	a.open.text.WriteString(text)
	var piece json.RawMessage
	if logprobs != nil {
		piece = append(append([]byte{'['}, logprobs[1:]...), ']')
		if a.open.probs == nil {
			logprobs = piece[:len(piece)-1]
		}
		a.open.probs = append(a.open.probs, logprobs...)
	}
	if a.stream != nil {
		a.stream.continued(a.open, text, piece)
	}
}

func (a *Answer) show(o *output) {
	a.finishCalls(translate.ItemComplete)
	o.index, o.isRound = a.shown, a.round
	o.item.ID = ItemID(a.ID, prefixOf(&o.item), a.shown)
	a.shown++
	a.outputs = append(a.outputs, o)
	if a.stream != nil {
		a.stream.added(o)
	}
}

func (a *Answer) hide(o *output) {
	o.index, o.isRound, o.isDone = -1, a.round, true
	a.outputs = append(a.outputs, o)
}

func (a *Answer) finish(o *output, status translate.ItemStatus) {
	o.isDone, o.item.Status = true, status
	if a.stream != nil {
		a.stream.finished(o)
	}
}

func (a *Answer) closeOpen(status translate.ItemStatus) {
	if a.open != nil {
		a.finish(a.open, status)
		a.open = nil
	}
}

// closeRound ends what the engine has said. The calls of MCP tools wait for their results.
func (a *Answer) closeRound(isCut bool) {
	status := translate.ItemComplete
	if isCut {
		status = translate.ItemIncomplete
	}
	a.flush(nil)
	a.closeOpen(status)
	a.finishCalls(status)
	for _, o := range a.outputs[a.roundFrom:] {
		switch {
		case o.isDone, o.item.Kind != translate.ItemCall:
		case o.isFunction():
			a.finish(o, status)
		default:
			a.ready(o)
		}
	}
}

// IsEmpty reports whether nothing was generated.
func (a *Answer) IsEmpty() bool {
	for _, o := range a.outputs {
		if o.item.Kind != translate.ItemToolList {
			return false
		}
	}
	return a.held == ""
}

// RoundIsEmpty reports whether the current round has generated nothing.
func (a *Answer) RoundIsEmpty() bool { return len(a.outputs) == a.roundFrom && a.held == "" }

// IsComplete reports whether the answer ended without reaching a limit or a fault.
func (a *Answer) IsComplete() bool {
	return a.failure == nil && a.status != Cancelled && a.reason != "" && a.reason != translate.FinishLength
}

// Usage returns the usage: the prompts and the generated tokens of all rounds.
func (a *Answer) Usage() translate.Usage { return a.tally.Sum() }

// Items returns the output for a conversation, each item with its id. The results of a round's calls follow all of its items, and have
// the ids of their calls.
func (a *Answer) Items() []translate.Item {
	items := make([]translate.Item, 0, len(a.outputs))
	var results []translate.Item
	for i, o := range a.outputs {
		if i > 0 && o.isRound != a.outputs[i-1].isRound {
			items, results = append(items, results...), nil
		}
		if o.isLeft {
			continue
		}
		items = append(items, o.finalItem())
		if o.result != nil {
			results = append(results, *o.result)
		}
	}
	return append(items, results...)
}

// End ends the answer: it is completed, or incomplete if it reached a limit. With an error it failed; it may not have been stored.
func (a *Answer) End(err *translate.Error) {
	switch {
	case a.status == Cancelled:
	case err != nil:
		a.end(Failed)
		a.status, a.failure = Failed, failureOf(err)
	case a.reason == translate.FinishLength:
		a.end(Incomplete)
	default:
		a.end(Completed)
	}
}

// Cancel ends the answer as one that the client doesn't want any more.
func (a *Answer) Cancel() { a.end(Cancelled) }

func (a *Answer) end(status Status) {
	if a.isOver() {
		return
	}
	a.closeRound(status != Completed)
	for _, o := range a.outputs {
		if !o.isDone {
			a.finish(o, translate.ItemIncomplete) // a call that has no result
		}
	}
	now := time.Now
	if a.Now != nil {
		now = a.Now
	}
	a.status, a.ended = status, now()
}

// Status returns the status of the response.
func (a *Answer) Status() Status {
	if a.status == "" {
		return InProgress
	}
	return a.status
}

func (a *Answer) isOver() bool { return a.status != "" && a.status != Queued }

func (a *Answer) completedAt() *int64 {
	if a.status != Completed {
		return nil
	}
	at := a.ended.Unix()
	return &at
}

// AppendBody appends the response.
func (a *Answer) AppendBody(dst []byte) []byte { return a.appendObject(dst) }
