package responses

import (
	"errors"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// conversationOf puts the conversation together: what was stored, and what the request adds. The demand gets the conversation's name, if it
// has one.
func conversationOf(c *endpoint.Call, ask *responses.Request, rq *text.Request) ([]translate.Item, error) {
	var items []translate.Item
	from := storedItems{call: c}
	if kept := unstored(c, ask.Previous); kept != nil {
		kept.isContinued = true
		items, rq.Demand.Conversation = slices.Clone(kept.items), kept.head
	} else if ask.Previous != "" {
		turns, err := text.Previous(c, ask.Previous)
		if err == nil && slices.ContainsFunc(turns, func(t *store.Turn) bool { return !responses.IsEcho(t.Request) }) {
			err = &store.NotFound{ID: ask.Previous}
		}
		if err != nil {
			return nil, noPrevious(c, ask.Previous, err)
		}
		if turns[len(turns)-1].Status == store.InProgress {
			return nil, translate.Invalid("invalid_value", "previous_response_id", "Previous response with id '"+ask.Previous+"' is still in progress: wait until it has ended, or cancel it.")
		}
		rq.Demand.Conversation = turns[0].ID
		for _, turn := range turns {
			items = append(append(items, turn.In...), turn.Out...)
		}
		if err := from.count(items); err != nil {
			return nil, err
		}
	}
	if err := resolve(c, ask, items, &from); err != nil {
		return nil, err
	}
	items = append(items, ask.Input...)
	items, bad := rq.Caps.Seen(rq.Target.Model.Key, items)
	if bad != nil {
		return nil, bad
	}
	if bad = responses.CheckCalls(items); bad != nil {
		return nil, bad
	}
	return items, nil
}

// resolve puts stored items in the place of references to them. A reference to an item that the conversation has already is left out.
func resolve(c *endpoint.Call, ask *responses.Request, have []translate.Item, from *storedItems) error {
	if !slices.ContainsFunc(ask.Input, func(item translate.Item) bool { return item.Kind == translate.ItemReference }) {
		return nil
	}
	has := map[string]bool{}
	for i := range have {
		has[have[i].ID] = true
	}
	input := make([]translate.Item, 0, len(ask.Input))
	for _, item := range ask.Input {
		if item.Kind != translate.ItemReference {
			input = append(input, item)
		} else if !has[item.ID] {
			found, err := referenced(c, item.ID, from)
			if err != nil {
				return err
			}
			input = append(input, found...)
		}
		has[item.ID] = true
	}
	ask.Input = input
	return nil
}

// referenced finds the item that a client refers to by its id; of a call that was made here, with its result. There is none for
// thoughts that aren't kept.
func referenced(c *endpoint.Call, id string, from *storedItems) (found []translate.Item, err error) {
	if response, _, ok := responses.ResponseOf(id); ok {
		if found, err = from.find(c.Request.Context(), response, id); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 && !strings.HasPrefix(id, "rs_") {
		return nil, &translate.Error{Kind: translate.KindResponseNotFound, Code: "item_not_found", Param: "input", Message: "Item with id '" + id + "' not found."}
	}
	return found, nil
}

// noPrevious is the error of a response that can't be continued.
func noPrevious(c *endpoint.Call, id string, err error) error {
	if _, isMissing := errors.AsType[*store.NotFound](err); isMissing {
		return translate.Invalid("previous_response_not_found", "previous_response_id", "Previous response with id '"+id+"' not found.")
	}
	return text.NoPrevious(c, err)
}
