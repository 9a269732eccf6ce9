package manage

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	nativewire "github.com/lmcaddy/lmcaddy/translate/native"
)

// importConversation is POST /api/v1/conversations: it stores responses as GET describes them, with new ids. The first one may continue a
// response that is stored already.
func importConversation(c *endpoint.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	change, err := changeOf(body)
	if err != nil {
		return err
	}
	all := body.Get("responses").Array()
	if len(all) == 0 || len(all) > store.MaxDepth {
		return translate.BadValue("responses",
			"must hold 1 to %d responses, as GET /api/v1/conversations/{id} returns them.", store.MaxDepth)
	}
	turns, ids := make([]*store.Turn, len(all)), map[string]string{}
	for i, v := range all {
		where := "responses[" + strconv.Itoa(i) + "]"
		turn, bad := turnOf(where, v)
		if bad != nil {
			return bad
		}
		turn.ID, turn.Owner = text.NewResponseID(), c.Owner()
		if i > 0 {
			if turn.Parent = ids[turn.Parent]; turn.Parent == "" {
				return translate.BadValue(where+".previous_response_id", "must be the id of one before it.")
			}
		}
		ids[v.Get("response_id").Str], turns[i] = turn.ID, turn
	}
	return storeImport(c, turns, change)
}

func storeImport(c *endpoint.Call, turns []*store.Turn, change conversationChange) error {
	ctx, stored, first := c.Request.Context(), c.Node.Stores.Get(), turns[0]
	for _, turn := range turns {
		if err := stored.Put(ctx, turn); err != nil {
			if first.Parent == "" {
				err = errors.Join(err, c.Node.Stores.DeleteConversation(context.WithoutCancel(ctx), first.Owner, first.ID))
			}
			return text.NoPrevious(c, err)
		}
	}
	if err := stored.Edit(ctx, first.Owner, first.Family, change.title, change.pinned); err != nil {
		return err
	}
	made, err := stored.Conversation(ctx, first.Owner, first.ID)
	if err != nil {
		return err
	}
	return c.Answer(describeConversation(&made))
}

// turnOf reads a response. One without a time is of now.
func turnOf(where string, v gjson.Result) (*store.Turn, *translate.Error) {
	usage := v.Get("usage")
	number := func(name string) int { return int(usage.Get(name).Int()) }
	turn := &store.Turn{
		Parent: v.Get("previous_response_id").Str, Model: v.Get("model").Str, Dialect: resource.DialectNative,
		Status: store.Status(v.Get("status").Str),
		Usage: translate.Usage{
			Prompt: number("input_tokens"), Cached: number("cached_input_tokens"), Completion: number("output_tokens"),
			Reasoning: number("reasoning_output_tokens"),
		},
		Figures: translate.Figures{
			Rate: usage.Get("tokens_per_second").Num, FirstToken: usage.Get("time_to_first_token_seconds").Num,
			Context: number("context_length"),
		},
	}
	switch turn.Status {
	case store.Incomplete, store.Failed:
	case store.InProgress, store.Cancelled:
		turn.Status = store.Incomplete
	default:
		turn.Status = store.Completed
	}
	if at, err := time.Parse(time.RFC3339, v.Get("created_at").Str); err == nil && at.Year() > earliestYear && at.Year() <= latestYear {
		turn.Created = at
	}
	if system := v.Get("system_prompt"); system.Type == gjson.String {
		turn.In = append(turn.In, translate.SystemItem(system.Str))
	}
	in, bad := nativewire.ParseItems(where+".input", v.Get("input"), translate.RoleUser)
	if bad == nil {
		turn.In = append(turn.In, in...)
		turn.Out, bad = nativewire.ParseItems(where+".output", v.Get("output"), translate.RoleAssistant)
	}
	return turn, bad
}

// conversationChange is what a request says of a conversation's title and pin; nil: nothing.
type conversationChange struct {
	title  *string
	pinned *bool
}

func changeOf(body *jsonbody.Body) (change conversationChange, err error) {
	if given := body.Get("title"); given.Exists() {
		if given.Type != gjson.String {
			return change, jsonbody.WrongType("title", "a string", given)
		}
		change.title = &given.Str
	}
	fields := body.Fields()
	if change.pinned = fields.MaybeBool("pinned"); fields.Err != nil {
		return change, fields.Err
	}
	return change, nil
}
