package native

import (
	"encoding/json"
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

type (
	// toolCall is the specification's item "tool_call", and the member of its events.
	toolCall struct {
		Type      string          `json:"type,omitempty"`
		CallID    string          `json:"call_id,omitempty"` // not in the specification: of a call that waits for its approval
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Output    *string         `json:"output,omitempty"`
		IsError   bool            `json:"is_error,omitempty"` // not in the specification: the tool, or its server, reports an error
		Provider  *provider       `json:"provider_info,omitempty"`
	}
	// invalidCall is the specification's item "invalid_tool_call", and the members of the event "tool_call.failure".
	invalidCall struct {
		Type     string          `json:"type,omitempty"`
		Reason   string          `json:"reason"`
		Metadata invalidMetadata `json:"metadata"`
	}
	invalidMetadata struct {
		Type      string          `json:"type"` // "invalid_name" or "invalid_arguments"
		Tool      string          `json:"tool_name"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Provider  *provider       `json:"provider_info,omitempty"`
	}
	provider struct {
		Type        string `json:"type"` // "plugin" or "ephemeral_mcp"
		PluginID    string `json:"plugin_id,omitempty"`
		ServerLabel string `json:"server_label,omitempty"`
	}
)

func providerOf(p *translate.Provider) *provider {
	switch {
	case p == nil || *p == translate.Provider{}:
		return nil
	case p.Plugin != "":
		return &provider{Type: "plugin", PluginID: p.Plugin}
	default:
		return &provider{Type: "ephemeral_mcp", ServerLabel: p.Server}
	}
}

func object(args []byte) json.RawMessage {
	if !jsonbody.IsObject(args) {
		return json.RawMessage("{}")
	}
	return args
}

type call struct {
	index    int // in its round
	tool     string
	id       string
	provider *translate.Provider
	args     []byte
	reason   string                // why it is invalid
	result   *translate.CallResult // nil until there is one
}

func (c *call) item(kind translate.ItemKind) translate.Item {
	item := translate.Item{Kind: kind, CallID: c.id, Tool: c.tool, Provider: c.provider}
	if len(c.args) > 0 {
		item.Args = object(c.args)
	}
	if kind == translate.ItemInvalid {
		item.Parts = []translate.Part{{Text: c.reason}}
	}
	return item
}

// resultItem returns what the model is given of the call's result: of an invalid call, the reason. ok: there is a result.
func (c *call) resultItem(kind translate.ItemKind) (item translate.Item, ok bool) {
	item = translate.Item{Kind: translate.ItemResult, CallID: c.id, Tool: c.tool}
	switch {
	case kind == translate.ItemInvalid:
		item.Parts = []translate.Part{{Text: c.reason}}
	case c.result != nil:
		item.Parts, item.Raw = c.result.Given, json.RawMessage(c.result.Output)
		if c.result.IsError {
			item.Status = translate.ItemFailed
		}
	default:
		return item, false
	}
	return item, true
}

func (a *Answer) addCall(ev translate.Event) {
	switch ev := ev.(type) {
	case translate.CallStart:
		if ev.Provider != (translate.Provider{}) { // the native chat has no tools of the client's
			c := &call{index: ev.Index, tool: ev.Name, id: ev.ID, provider: &ev.Provider}
			a.items, a.open = append(a.items, &output{kind: translate.ItemCall, round: a.round, call: c}), false
		}
	case translate.CallArgs:
		if o := a.callOf(ev.Index); o != nil {
			o.call.args = append(o.call.args, ev.Text...)
		}
	case translate.CallResult:
		if o := a.callOf(ev.Index); o != nil {
			o.call.result = &ev
		}
	case translate.CallInvalid:
		o := a.callOf(ev.Index)
		if o == nil {
			o = &output{round: a.round, call: &call{index: ev.Index, id: ev.ID, tool: ev.Name}}
			a.items, a.open = append(a.items, o), false
		}
		o.kind, o.call.reason = translate.ItemInvalid, ev.Reason
		if !ev.ArgumentsBad {
			o.call.args, o.call.provider = nil, nil
		}
	}
}

func (a *Answer) callOf(index int) *output {
	for _, o := range slices.Backward(a.items[a.roundFrom:]) {
		if o.call != nil && o.call.index == index {
			return o
		}
	}
	return nil
}

func (s *Stream) appendCall(dst []byte, ev translate.Event) []byte {
	var o *output
	var (
		name string
		body toolCall
	)
	switch ev := ev.(type) {
	case translate.CallStart:
		if ev.Provider == (translate.Provider{}) {
			return dst
		}
		dst = s.appendClosed(dst)
		return appendMembers(dst, "tool_call.start", toolCall{Tool: ev.Name, Provider: providerOf(&ev.Provider)})
	case translate.CallDone:
		if o = s.callOf(ev.Index); o == nil {
			return dst
		}
		name = "tool_call.arguments"
	case translate.CallResult:
		if o = s.callOf(ev.Index); o == nil {
			return dst
		}
		name, body.Output, body.IsError = "tool_call.success", &ev.Output, ev.IsError
	case translate.CallApproval:
		if o = s.callOf(ev.Index); o == nil {
			return dst
		}
		name, body.CallID = "tool_call.approval", ev.ID
	default:
		return dst
	}
	body.Tool, body.Arguments, body.Provider = o.call.tool, object(o.call.args), providerOf(o.call.provider)
	return appendMembers(s.appendClosed(dst), name, body)
}

func invalidOf(item *translate.Item) invalidCall {
	made := invalidCall{Reason: translate.JoinTexts(item.Parts), Metadata: invalidMetadata{Type: "invalid_name", Tool: item.Tool}}
	if item.Args != nil {
		made.Metadata.Type, made.Metadata.Arguments, made.Metadata.Provider = "invalid_arguments", item.Args, providerOf(item.Provider)
	}
	return made
}

func appendMembers(dst []byte, name string, v any) []byte {
	object := jsonbody.AppendJSON(nil, v)
	return appendEvent(dst, name, string(object[1:len(object)-1]), nil)
}
