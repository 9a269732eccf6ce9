package responses

import (
	"context"
	"errors"
	"slices"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
)

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
		return translate.Invalid("conversation_too_long", "input",
			"What the request continues and refers to is larger than 256 MiB, which is as much as is kept for one request. Begin a new conversation.")
	}
	return b.call.Claim.Grow(size)
}

func sizeOf(items []translate.Item) (size int64) {
	const overhead = 256
	for i := range items {
		size += int64(overhead + len(items[i].Args) + len(items[i].Raw))
		for _, part := range items[i].Parts {
			size += int64(overhead + len(part.Text) + len(part.Quoted))
			if part.Image != nil {
				size += int64(len(part.Image.Data))
			}
		}
	}
	return size
}

// find returns the items of a stored response that have an id; none: the owner has no such item.
func (b *storedItems) find(ctx context.Context, response, id string) ([]translate.Item, error) {
	if !b.turns[response] {
		turn, err := b.call.Node.Stores.Get().Get(ctx, b.call.Owner(), response)
		if _, isMissing := errors.AsType[*store.NotFound](err); isMissing {
			turn = new(store.Turn)
		} else if err != nil {
			return nil, err
		}
		if b.turns == nil {
			b.turns, b.items = map[string]bool{}, map[string][]translate.Item{}
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
	return b.items[id], nil
}
