package request

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits of a conversation, far above what clients need.
const (
	MaxMessages = jsonbody.MaxMessages
	MaxParts    = 4096 // in the content of one message
	MaxCalls    = 256  // in one message
)

// SystemPrompt is the name of the default that isn't a field of requests: a system message before all others.
const SystemPrompt = "system_prompt"

// MessagesOf writes a conversation as the messages of a chat. Only the last system prompt is kept, as the first message. A developer's
// message within the conversation is sent as the user's. Calls become the assistant's, with their results after them. Reasoning is left
// out before the last message of the user: models are trained without it, but need that of a tool loop that goes on.
func MessagesOf(items []translate.Item) Messages {
	last := func(role translate.Role) int {
		for i, item := range slices.Backward(items) {
			if item.Kind == translate.ItemMessage && item.Role == role {
				return i
			}
		}
		return -1
	}
	w := conversationWriter{Messages: NewMessages(sizeOf(items)), thinksFrom: last(translate.RoleUser)}
	if at := last(translate.RoleSystem); at >= 0 && translate.JoinTexts(items[at].Parts) != "" {
		w.Begin(translate.RoleSystem)
		w.Parts(items[at].Parts)
		w.End()
	}
	for i := range items {
		w.add(i, &items[i])
	}
	w.flush()
	return w.Messages
}

// sizeOf returns about how many bytes the messages of a conversation have.
func sizeOf(items []translate.Item) (size int) {
	const aroundText = 48
	for i := range items {
		if size += aroundText; !items[i].AreObject || len(items[i].Args) < LongText {
			size += len(items[i].Args)
		}
		for k := range items[i].Parts {
			part := &items[i].Parts[k]
			if size += len(part.Text) + aroundText; part.Media != nil {
				size += base64.StdEncoding.EncodedLen(len(part.Media.Data))
			}
		}
	}
	return size
}

type conversationWriter struct {
	Messages
	thinksFrom int            // index of the first item whose reasoning is kept
	said       translate.Role // role of the last message

	// The message of the assistant that isn't written yet: what one round of a tool loop has said, with the results.
	parts     []translate.Part
	reasoning []string
	calls     []*translate.Item
	results   map[string]*translate.Item // by the ids of their calls
	open      bool
}

func (w *conversationWriter) add(i int, item *translate.Item) {
	if item.Kind == translate.ItemResult {
		if w.results == nil {
			w.results = map[string]*translate.Item{}
		}
		w.results[item.CallID] = item
		return
	}
	if len(w.results) > 0 { // the next round
		w.flush()
	}
	switch {
	case item.Kind == translate.ItemReasoning && i > w.thinksFrom:
		w.open = true
		w.reasoning = append(w.reasoning, translate.JoinTexts(item.Parts))
	case item.Kind == translate.ItemCall, item.Kind == translate.ItemInvalid:
		w.open = true
		w.calls = append(w.calls, item)
	case item.Kind != translate.ItemMessage, item.Role == translate.RoleSystem:
	case item.Role == translate.RoleDeveloper:
		said := *item
		said.Role = translate.RoleUser
		w.flush()
		w.user(&said)
	case item.Role == translate.RoleUser:
		w.flush()
		w.user(item)
	default:
		if w.open && len(w.parts) > 0 && len(w.calls) == 0 { // another answer
			w.flush()
		}
		w.open = true
		w.parts = append(w.parts, item.Parts...)
	}
}

func (w *conversationWriter) user(item *translate.Item) {
	if w.said == translate.RoleUser { // the first had no answer; many templates require alternating turns
		w.Begin(translate.RoleAssistant)
		w.Parts(nil)
		w.End()
	}
	w.said = item.Role
	w.Begin(item.Role)
	w.Parts(item.Parts)
	w.End()
}

func (w *conversationWriter) flush() {
	if w.open && (len(w.parts) > 0 || len(w.calls) > 0) {
		w.said = translate.RoleAssistant
		w.Begin(translate.RoleAssistant)
		w.Parts(w.parts)
		if len(w.reasoning) > 0 && len(w.calls) > 0 {
			w.Member("reasoning_content", jsonbody.AppendString(nil, strings.Join(w.reasoning, "\n")))
		}
		for i, call := range w.calls {
			w.call(i, call)
		}
		w.End()
		for i, call := range w.calls {
			w.result(i, call)
		}
	}
	*w = conversationWriter{Messages: w.Messages, thinksFrom: w.thinksFrom, said: w.said}
}

func (w *conversationWriter) call(i int, call *translate.Item) {
	w.beginCall()
	w.json = jsonbody.AppendString(append(w.json, `{"id":`...), callID(i, call))
	w.json = jsonbody.AppendString(append(w.json, `,"type":"function","function":{"name":`...), call.Tool)
	w.json = append(w.json, `,"arguments":`...)
	args := call.Args
	switch isText := len(args) > 0 && args[0] == '"'; {
	case call.AreObject:
		w.json = append(w.json, args...)
	case isText && jsonbody.IsObject(jsonbody.Unquoted(args)):
		w.json = jsonbody.AppendQuoted(w.json, jsonbody.Unquoted(args))
	case !isText && jsonbody.IsObject(args):
		w.json = jsonbody.AppendQuoted(w.json, args)
	default: // engines refuse a conversation in which they are no object
		w.json = append(w.json, `"{}"`...)
	}
	w.json = append(w.json, "}}"...)
}

func callID(i int, call *translate.Item) string { return cmp.Or(call.CallID, "call_"+strconv.Itoa(i)) }

func (w *conversationWriter) result(i int, call *translate.Item) {
	given := []translate.Part{{Text: "The call was not made."}}
	if result := w.results[call.CallID]; result != nil {
		given = result.Parts
	}
	w.Begin("tool")
	w.Parts(given)
	w.Member("tool_call_id", jsonbody.AppendString(nil, callID(i, call)))
	w.End()
}
