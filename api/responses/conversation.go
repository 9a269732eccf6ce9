package responses

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// conversationOf puts together what was stored and what the request adds. The demand gets the conversation's name, if it has one.
func conversationOf(c *endpoint.Call, ask *responses.Request, rq *text.Request) ([]translate.Item, error) {
	var items []translate.Item
	from := storedItems{call: c, turns: map[string]bool{}, items: map[string][]translate.Item{}}
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
			return nil, translate.Invalid("invalid_value", "previous_response_id",
				"Previous response with id '"+ask.Previous+"' is still in progress: wait until it has ended, or cancel it.")
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
			found, err := from.referenced(c.Request.Context(), item.ID)
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

func noPrevious(c *endpoint.Call, id string, err error) error {
	if _, isMissing := errors.AsType[*store.NotFound](err); isMissing {
		return translate.Invalid("previous_response_not_found", "previous_response_id", "Previous response with id '"+id+"' not found.")
	}
	return text.NoPrevious(c, err)
}

// unstoredResponse is the last response of a WebSocket, if it isn't stored, so that only the connection can continue it.
type unstoredResponse struct {
	id    string // empty: there is none
	head  string // the id of the stored response that the conversation began with; empty: there is none
	items []translate.Item
	claim access.BodyClaim

	isContinued bool // by the request that is being answered
}

func (u *unstoredResponse) forget() {
	u.claim.Release()
	*u = unstoredResponse{isContinued: u.isContinued}
}

// unstored returns the response with an id if the call's WebSocket has it.
func unstored(c *endpoint.Call, id string) *unstoredResponse {
	if s := socketOf(c); s != nil && id != "" && s.unstored.id == id {
		return &s.unstored
	}
	return nil
}

// keep keeps the response for the next request on the WebSocket, if there is memory for it. Else the client sends all of it again.
func (r *run) keep() {
	s := socketOf(r.Call)
	if status := r.out.Status(); s == nil || status != responses.Completed && status != responses.Incomplete {
		return
	}
	s.unstored.forget()
	if r.ask.Store {
		return
	}
	items := translate.Settled(slices.Concat(r.conversation, r.out.Items()))
	claim := r.Call.Node.Access.Bodies.Claim(endpoint.Payer(r.Call))
	if claim.Grow(sizeOf(items)) != nil {
		return
	}
	s.unstored = unstoredResponse{id: r.out.ID, head: r.Request.Demand.Conversation, items: items, claim: claim}
}

// storedItems is what a request brings in from the store, by continuing a response or referring to items. Each turn is read once.
type storedItems struct {
	call  *endpoint.Call
	turns map[string]bool             // the ids of those that were looked for
	items map[string][]translate.Item // of these turns, by id; a call and its result have the same
	bytes int64
}

func (b *storedItems) count(items []translate.Item) error {
	size := sizeOf(items)
	if b.bytes += size; b.bytes > b.call.Site.MaxBrought {
		return translate.Invalid("conversation_too_long", "input", "What the request continues and refers to is larger than 256 MiB, "+
			"which is as much as is kept for one request. Begin a new conversation.")
	}
	return b.call.Claim.Grow(size)
}

func sizeOf(items []translate.Item) (size int64) {
	const overhead = 256
	for i := range items {
		size += int64(overhead + len(items[i].Args) + len(items[i].Raw))
		for _, part := range items[i].Parts {
			size += int64(overhead + len(part.Text) + len(part.Quoted))
			if part.Media != nil {
				size += int64(len(part.Media.Data))
			}
		}
	}
	return size
}

// referenced finds an item by its id; of a call that was made here, with its result. There is none for thoughts that aren't kept.
func (b *storedItems) referenced(ctx context.Context, id string) ([]translate.Item, error) {
	if response, _, ok := responses.ResponseOf(id); ok && !b.turns[response] {
		turn, err := b.call.Node.Stores.Get().Get(ctx, b.call.Owner(), response)
		if _, isMissing := errors.AsType[*store.NotFound](err); isMissing {
			turn = new(store.Turn)
		} else if err != nil {
			return nil, err
		}
		b.turns[response] = true
		all := slices.Concat(turn.In, turn.Out)
		if err := b.count(all); err != nil {
			return nil, err
		}
		for _, item := range all {
			b.items[item.ID] = append(b.items[item.ID], item)
		}
	}
	found := b.items[id]
	if len(found) == 0 && !strings.HasPrefix(id, "rs_") {
		return nil, translate.NewError(translate.KindResponseNotFound, "item_not_found", "input", "Item with id '"+id+"' not found.")
	}
	return found, nil
}
