package manage

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/native"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
)

// defaultConversations and maxConversations are how many conversations are listed at a time.
const defaultConversations, maxConversations = 20, 100

// listConversations is GET /api/v1/conversations?limit=20&cursor=…&owner=…, the last updated first.
func listConversations(c *endpoint.Call) error {
	owner, err := conversationOwner(c)
	if err != nil {
		return err
	}
	query := c.Request.URL.Query()
	limit := defaultConversations
	if given := query.Get("limit"); given != "" {
		if limit, err = strconv.Atoi(given); err != nil || limit < 1 || limit > maxConversations {
			return translate.Invalid("invalid_value", "limit", fmt.Sprintf(`"limit" must be from 1 to %d.`, maxConversations))
		}
	}
	after, bad := positionOf(query.Get("cursor"))
	if bad != nil {
		return bad
	}
	found, err := c.Node.Stores.Get().Conversations(c.Request.Context(), owner, after, limit+1)
	if err != nil {
		return err
	}
	list := resource.Conversations{Conversations: []resource.Conversation{}}
	if len(found) > limit {
		found = found[:limit]
		list.Next = new(cursorOf(&found[limit-1]))
	}
	for i := range found {
		list.Conversations = append(list.Conversations, describeConversation(&found[i]))
	}
	return c.Answer(list)
}

// conversationOwner returns whose conversations the request is about: its own, or for administrators those of the query's owner.
func conversationOwner(c *endpoint.Call) (string, error) {
	query := c.Request.URL.Query()
	owner := query.Get("owner")
	if !query.Has("owner") || owner == c.Owner() {
		return c.Owner(), nil
	}
	if c.Identity == nil || !c.Identity.May(access.ScopeAdmin) {
		return "", &translate.Error{
			Kind: translate.KindForbidden, Code: "missing_scope", Param: "owner",
			Message: "Only a token with the scope admin may see the conversations of others.",
		}
	}
	return owner, nil
}

// cursorOf is the place after a conversation in the list.
func cursorOf(at *store.Conversation) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(at.Updated.UnixNano(), 10) + " " + at.ID))
}

func positionOf(cursor string) (at store.Position, _ *translate.Error) {
	if cursor == "" {
		return at, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	nanos, id, _ := strings.Cut(string(text), " ")
	updated, bad := strconv.ParseInt(nanos, 10, 64)
	if err != nil || bad != nil || id == "" {
		return at, translate.Invalid("invalid_value", "cursor", `"cursor" must be the "next_cursor" of an earlier answer.`)
	}
	return store.Position{Updated: time.Unix(0, updated), ID: id}, nil
}

func describeConversation(stored *store.Conversation) resource.Conversation {
	return resource.Conversation{
		ID: stored.ID, Title: stored.Title, Dialect: stored.Dialect, Model: stored.Model, Status: string(stored.Status), Turns: stored.Turns,
		Last: stored.Last, Owner: stored.Owner, Created: resource.At(stored.Created), Updated: resource.At(stored.Updated),
	}
}

// conversation returns the conversation that the path names, also by the beginning of its id, with or without "resp_".
func conversation(c *endpoint.Call) (store.Conversation, error) {
	owner, err := conversationOwner(c)
	if err != nil {
		return store.Conversation{}, err
	}
	id := c.Param
	if !strings.HasPrefix(id, "resp_") {
		id = "resp_" + id
	}
	return c.Node.Stores.Get().Conversation(c.Request.Context(), owner, id)
}

// getConversation is GET /api/v1/conversations/{id}?responses=true&branches=false.
func getConversation(c *endpoint.Call) error {
	stored, err := conversation(c)
	if err != nil {
		return err
	}
	wantsResponses := true
	if c.Request.URL.Query().Has("responses") {
		if wantsResponses, err = endpoint.QueryBool(c, "responses"); err != nil {
			return err
		}
	}
	wantsBranches, err := endpoint.QueryBool(c, "branches")
	if err != nil {
		return err
	}
	described := describeConversation(&stored)
	if wantsResponses {
		turns, err := responsesOf(c, &stored, wantsBranches)
		if err != nil {
			return err
		}
		for _, turn := range turns {
			described.Responses = append(described.Responses, native.DescribeResponse(turn))
		}
	}
	return c.Answer(described)
}

// responsesOf returns the turns on the way to the newest one, or those of all branches.
func responsesOf(c *endpoint.Call, stored *store.Conversation, inAllBranches bool) ([]*store.Turn, error) {
	if inAllBranches {
		return c.Node.Stores.Get().Branches(c.Request.Context(), stored.Owner, stored.ID)
	}
	return c.Node.Stores.Get().Chain(c.Request.Context(), stored.Owner, stored.Last)
}

// deleteConversation is DELETE /api/v1/conversations/{id}.
func deleteConversation(c *endpoint.Call) error {
	stored, err := conversation(c)
	if err == nil {
		err = c.Node.Stores.DeleteConversation(c.Request.Context(), stored.Owner, stored.ID)
	}
	if err != nil {
		return err
	}
	return c.Answer(resource.DeletedConversations{Deleted: 1})
}

// The store has times from 1970 on, in nanoseconds, which overflow in 2262.
const earliestYear, latestYear = 1970, 2261

// deleteConversations is DELETE /api/v1/conversations?updated_before=2026-01-31T12:00:00Z.
func deleteConversations(c *endpoint.Call) error {
	owner, err := conversationOwner(c)
	if err != nil {
		return err
	}
	before, err := time.Parse(time.RFC3339, c.Request.URL.Query().Get("updated_before"))
	if err != nil || before.Year() > latestYear || before.Year() < earliestYear {
		return translate.Invalid("invalid_value", "updated_before",
			`"updated_before" must be a time such as 2026-01-31T12:00:00Z: all conversations whose last response is older are deleted.`)
	}
	deleted, err := c.Node.Stores.Get().DeleteConversations(c.Request.Context(), owner, before)
	if err != nil {
		return err
	}
	return c.Answer(resource.DeletedConversations{Deleted: deleted})
}
