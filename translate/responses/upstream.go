package responses

import (
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Upstream returns the request of one round for the wire of an engine. conversation is the whole of it, without the instructions;
// references must have been replaced. tools are those of the client and of MCP servers, of which the model is offered what the request
// allows. first is whether it is the first round: a required call is required there only, and the conversation is checked with
// [CheckCalls].
func (r *Request) Upstream(
	conversation []translate.Item, tools []request.Tool, first bool,
) (*jsonbody.Body, request.Chat, *translate.Error) {
	chat := r.Chat
	if first {
		if err := CheckCalls(conversation); err != nil {
			return nil, chat, err
		}
	}
	kept, isForced, err := r.offered(tools, first)
	if err != nil {
		return nil, chat, err
	}
	arranged := r.arrange(conversation)
	format := r.format
	if isForced {
		if last := arranged[len(arranged)-1]; last.Kind == translate.ItemMessage && last.Role == translate.RoleAssistant {
			return nil, chat, badChoice(`demands a call, but the last item of the "input" begins another answer: ` +
				`leave out that item, or set "tool_choice" to "auto".`)
		}
		if format, err = chat.Force(kept); err != nil {
			return nil, chat, err
		}
		if r.MaxOutput == 0 {
			chat.Limit = request.MaxForcedTokens
			chat.LimitTokens(request.MaxForcedTokens)
		}
	} else if err := chat.Offer(kept, format); err != nil {
		return nil, chat, err
	}
	messages := request.MessagesOf(arranged)
	var own jsonbody.Edit
	if len(kept) > 0 {
		own.SetLarge("tools", request.Definitions(kept))
	}
	if format != "" {
		own.Set("response_format", format)
	}
	body, err := messages.Body(own.Apply(&jsonbody.Body{}), r.edit.Apply(&jsonbody.Body{}))
	return body, chat, err
}

// notMade is the result of a call that has none.
const notMade = "The call was not made."

// arranger brings the items of a conversation into the order that templates of models accept: one system prompt, then turns of the
// user and of the assistant, each call with its result right after the assistant's turn.
type arranger struct {
	request *Request
	system  []string
	items   []translate.Item
	results map[string][]*translate.Item // that haven't been placed, by the ids of their calls
	open    []string                     // ids of the calls whose results follow
}

func (r *Request) arrange(conversation []translate.Item) []translate.Item {
	a := arranger{request: r, results: map[string][]*translate.Item{}}
	if r.Instructions != nil && *r.Instructions != "" {
		a.system = append(a.system, *r.Instructions)
	}
	for i := range conversation {
		if item := &conversation[i]; item.Kind == translate.ItemResult {
			a.results[item.CallID] = append(a.results[item.CallID], item)
		}
	}
	for i := range conversation {
		a.add(&conversation[i])
	}
	a.endCalls()
	if len(a.items) == 0 { // many templates need a message of the user
		a.say(translate.RoleUser, []translate.Part{{}})
	}
	if len(a.system) > 0 {
		return slices.Insert(a.items, 0, translate.SystemItem(strings.Join(a.system, "\n\n")))
	}
	return a.items
}

func (a *arranger) add(item *translate.Item) {
	switch item.Kind {
	case translate.ItemMessage:
		switch {
		case item.Role == translate.RoleUser:
			a.endCalls()
			a.say(translate.RoleUser, item.Parts)
		case translate.AreBlank(item.Parts): // nothing was said
		case item.Role == translate.RoleAssistant:
			a.say(translate.RoleAssistant, item.Parts)
		case len(a.items) == 0:
			a.system = append(a.system, translate.JoinTexts(item.Parts))
		default: // templates accept a system prompt only at the start, but its place matters
			a.endCalls()
			said := request.SystemBegin + "\n" + translate.JoinTexts(item.Parts) + "\n" + request.SystemEnd
			a.say(translate.RoleDeveloper, []translate.Part{{Text: said}})
		}
	case translate.ItemSummary:
		a.endCalls()
		const mark = "summary_of_the_conversation_so_far>"
		a.say(translate.RoleUser, []translate.Part{{Text: "<" + mark + "\n" + translate.JoinTexts(item.Parts) + "\n</" + mark}})
	case translate.ItemReasoning:
		if !translate.AreBlank(item.Parts) {
			a.items = append(a.items, *item)
		}
	case translate.ItemCall, translate.ItemInvalid:
		called := *item
		called.Tool = a.request.knownName(item.Namespace, item.Tool)
		a.items, a.open = append(a.items, called), append(a.open, item.CallID)
	case translate.ItemResult:
		a.endCalls()
	}
}

// say adds to the turn of a role, or begins one. What a developer says is part of the user's turn. By itself, it doesn't end a tool
// loop, as a message of the user does.
func (a *arranger) say(role translate.Role, parts []translate.Part) {
	at := len(a.items) - 1
	isAnswer := role == translate.RoleAssistant
	for isAnswer && at >= 0 && a.items[at].Kind == translate.ItemReasoning {
		at--
	}
	if at >= 0 && a.items[at].Kind == translate.ItemMessage && (a.items[at].Role == translate.RoleAssistant) == isAnswer {
		turn := &a.items[at]
		turn.Parts = append(slices.Clip(turn.Parts), parts...)
		if role == translate.RoleUser {
			turn.Role = role
		}
		return
	}
	a.items = append(a.items, translate.Item{Kind: translate.ItemMessage, Role: role, Parts: parts})
}

func (a *arranger) endCalls() {
	for _, id := range a.open {
		result := translate.Item{Kind: translate.ItemResult, CallID: id, Parts: []translate.Part{{Text: notMade}}}
		if given := a.results[id]; len(given) > 0 {
			result, a.results[id] = *given[0], given[1:]
		}
		a.items = append(a.items, result)
	}
	a.open = nil
}
