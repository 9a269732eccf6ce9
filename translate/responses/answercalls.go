package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

func (a *Answer) addCall(ev translate.Event) {
	switch ev := ev.(type) {
	case translate.CallStart:
		a.startCall(ev)
	case translate.CallArgs:
		if o := a.callOf(ev.Index); o != nil && !o.isDone && !o.isReady {
			o.text.WriteString(ev.Text)
			a.tellArguments(o, ev.Text)
		}
	case translate.CallDone:
		if o := a.callOf(ev.Index); o != nil && !o.isDone {
			a.ready(o)
		}
	case translate.CallResult:
		if o := a.callOf(ev.Index); o != nil && !o.isDone && !o.isFunction() {
			a.ready(o)
			a.addResult(o, ev)
		}
	case translate.CallInvalid:
		a.addInvalid(ev)
	}
}

// tellArguments tells of a piece of a function's arguments, or of what they add to a custom tool's input.
func (a *Answer) tellArguments(o *output, piece string) {
	if !o.isFunction() || a.stream == nil {
		return
	}
	if o.item.Custom {
		piece = o.input.Next(o.text.String())
		o.told += len(piece)
	}
	if piece != "" {
		a.stream.continued(o, piece, nil)
	}
}

func (a *Answer) startCall(ev translate.CallStart) {
	a.closeOpen(translate.ItemComplete)
	o := &output{call: ev.Index, item: translate.Item{Kind: translate.ItemCall, CallID: ev.ID, Tool: ev.Name}}
	if ev.Provider != (translate.Provider{}) {
		o.item.Provider = &ev.Provider
	} else if a.Request != nil {
		if f, ok := a.Request.names[ev.Name]; ok {
			o.item.Namespace, o.item.Tool, o.item.Custom = f.namespace, f.name, f.isCustom
		}
		isCall := func(o *output) bool { return o.item.Kind == translate.ItemCall }
		if a.Request.Chat.SingleCall && slices.ContainsFunc(a.outputs[a.roundFrom:], isCall) {
			o.isLeft = true
			a.hide(o)
			return
		}
	}
	if o.item.CallID == "" {
		o.item.CallID = "call_" + ItemID(a.ID, functionPrefix, a.shown)
	}
	a.show(o)
}

// ready notes that the arguments of a call are complete. Those of a function may yet be cut off, unless they are an object.
func (a *Answer) ready(o *output) {
	switch {
	case o.isReady:
	case !o.isFunction():
		if o.isReady = true; a.stream != nil {
			if arguments := o.text.String(); arguments != "" {
				a.stream.arguments("response.mcp_call_arguments.delta", o, "delta", arguments)
			}
			a.stream.arguments("response.mcp_call_arguments.done", o, "arguments", o.text.String())
		}
	case jsonbody.IsObject([]byte(o.text.String())):
		o.isReady = true
		a.finish(o, translate.ItemComplete)
	default:
		o.isReady = true
	}
}

// finishCalls ends the calls of functions whose arguments have ended. Of them, the last one may be cut off.
func (a *Answer) finishCalls(status translate.ItemStatus) {
	for _, o := range a.outputs[a.roundFrom:] {
		if o.isDone || !o.isReady || !o.isFunction() {
			continue
		}
		if status == translate.ItemComplete && strings.TrimSpace(o.text.String()) == "" { // the function has no parameters
			o.text.WriteString("{}")
			a.tellArguments(o, "{}")
		}
		a.finish(o, status)
	}
}

func (a *Answer) addResult(o *output, ev translate.CallResult) {
	status := translate.ItemComplete
	content := json.RawMessage(ev.Output)
	if !json.Valid(content) {
		content = textContent(ev.Output)
	}
	switch {
	case a.trouble != nil:
		said := protocolError{"mcp_protocol_error", connectionClosed, a.trouble.Message}
		status, o.item.Raw = translate.ItemFailed, jsonbody.AppendJSON(nil, said)
	case ev.IsError:
		status, o.item.Raw = translate.ItemFailed, toolError(content)
	}
	a.trouble = nil
	o.result = resultOf(&o.item, ev.Given, content)
	a.finish(o, status)
}

func resultOf(call *translate.Item, given []translate.Part, content json.RawMessage) *translate.Item {
	return &translate.Item{ID: call.ID, Kind: translate.ItemResult, CallID: call.CallID, Tool: call.Tool, Parts: given, Raw: content}
}

// addInvalid adds a call that can't be made. One of a tool that doesn't exist isn't shown: the model gets a second chance.
func (a *Answer) addInvalid(ev translate.CallInvalid) {
	o := a.callOf(ev.Index)
	reason := []translate.Part{{Text: ev.Reason}}
	switch {
	case !ev.ArgumentsBad:
		a.closeOpen(translate.ItemComplete)
		o = &output{call: ev.Index, item: translate.Item{Kind: translate.ItemInvalid, CallID: ev.ID, Tool: ev.Name, Parts: reason}}
		o.item.Status = translate.ItemFailed
		a.hide(o)
	case o == nil, o.isDone, o.isFunction():
		return
	default:
		a.ready(o)
		o.item.Kind, o.item.Parts, o.item.Raw = translate.ItemInvalid, reason, toolError(textContent(ev.Reason))
		a.finish(o, translate.ItemFailed)
	}
	o.result = resultOf(&o.item, reason, nil)
}

func (a *Answer) callOf(index int) *output {
	for _, o := range slices.Backward(a.outputs[a.roundFrom:]) {
		if o.call == index && (o.item.Kind == translate.ItemCall || o.item.Kind == translate.ItemInvalid) {
			return o
		}
	}
	return nil
}
