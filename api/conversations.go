package api

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// defaultConversations and maxConversations are how many conversations are listed at a time.
const defaultConversations, maxConversations = 20, 100

// listConversations is GET /api/v1/conversations?limit=20&cursor=…&owner=…, the last updated first.
func (c *call) listConversations() error {
	owner, err := c.conversationOwner()
	if err != nil {
		return err
	}
	query := c.r.URL.Query()
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
	found, err := c.node.Conversations().Conversations(c.r.Context(), owner, after, limit+1)
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
	return c.answer(list)
}

// conversationOwner returns whose conversations the request is about: its own, or for administrators those of the query's owner.
func (c *call) conversationOwner() (string, error) {
	query := c.r.URL.Query()
	owner := query.Get("owner")
	if !query.Has("owner") || owner == c.owner() {
		return c.owner(), nil
	}
	if c.who == nil || !c.who.May(node.ScopeAdmin) {
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
	dialect := stored.Dialect
	if dialect == "" {
		if dialect = resource.DialectNative; responses.IsEcho(stored.First) {
			dialect = resource.DialectResponses
		}
	}
	return resource.Conversation{
		ID: stored.ID, Title: stored.Title, Dialect: dialect, Model: stored.Model, Status: string(stored.Status), Turns: stored.Turns,
		Last: stored.Last, Owner: stored.Owner, Created: resource.At(stored.Created), Updated: resource.At(stored.Updated),
	}
}

// conversation returns the conversation that the path names, also by the beginning of its id, with or without "resp_".
func (c *call) conversation() (store.Conversation, error) {
	owner, err := c.conversationOwner()
	if err != nil {
		return store.Conversation{}, err
	}
	id := c.param
	if !strings.HasPrefix(id, "resp_") {
		id = "resp_" + id
	}
	return c.node.Conversations().Conversation(c.r.Context(), owner, id)
}

// getConversation is GET /api/v1/conversations/{id}?responses=true&branches=false.
func (c *call) getConversation() error {
	stored, err := c.conversation()
	if err != nil {
		return err
	}
	wantsResponses := true
	if c.r.URL.Query().Has("responses") {
		if wantsResponses, err = c.queryBool("responses"); err != nil {
			return err
		}
	}
	wantsBranches, err := c.queryBool("branches")
	if err != nil {
		return err
	}
	described := describeConversation(&stored)
	if wantsResponses {
		turns, err := c.responsesOf(&stored, wantsBranches)
		if err != nil {
			return err
		}
		for _, turn := range turns {
			described.Responses = append(described.Responses, describeResponse(turn))
		}
	}
	return c.answer(described)
}

// responsesOf returns the turns on the way to the newest one, or those of all branches.
func (c *call) responsesOf(stored *store.Conversation, inAllBranches bool) ([]*store.Turn, error) {
	if inAllBranches {
		return c.node.Conversations().Branches(c.r.Context(), stored.Owner, stored.ID)
	}
	return c.node.Conversations().Chain(c.r.Context(), stored.Owner, stored.Last)
}

// deleteConversation is DELETE /api/v1/conversations/{id}.
func (c *call) deleteConversation() error {
	stored, err := c.conversation()
	if err == nil {
		err = c.node.DeleteConversation(c.r.Context(), stored.Owner, stored.ID)
	}
	if err != nil {
		return err
	}
	return c.answer(resource.DeletedConversations{Deleted: 1})
}

// The store has times from 1970 on, in nanoseconds, which overflow in 2262.
const earliestYear, latestYear = 1970, 2261

// deleteConversations is DELETE /api/v1/conversations?updated_before=2026-01-31T12:00:00Z.
func (c *call) deleteConversations() error {
	owner, err := c.conversationOwner()
	if err != nil {
		return err
	}
	before, err := time.Parse(time.RFC3339, c.r.URL.Query().Get("updated_before"))
	if err != nil || before.Year() > latestYear || before.Year() < earliestYear {
		return translate.Invalid("invalid_value", "updated_before",
			`"updated_before" must be a time such as 2026-01-31T12:00:00Z: all conversations whose last response is older are deleted.`)
	}
	deleted, err := c.node.Conversations().DeleteConversations(c.r.Context(), owner, before)
	if err != nil {
		return err
	}
	return c.answer(resource.DeletedConversations{Deleted: deleted})
}
