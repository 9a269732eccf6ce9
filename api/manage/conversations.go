package manage

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/native"
	"github.com/lmcaddy/lmcaddy/internal/resource"
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
	query := parametersOf(c)
	limit, after := query.limit(1, maxConversations, defaultConversations), query.position()
	filter := store.Filter{Text: query.Get("query"), Pinned: query.bool("pinned", false)}
	if query.err != nil {
		return query.err
	}
	found, err := c.Node.Stores.Get().Search(c.Request.Context(), owner, filter, after, limit+1)
	if err != nil {
		return err
	}
	list := resource.Conversations{Conversations: []resource.Conversation{}}
	if len(found) > limit {
		found = found[:limit]
		last := &found[limit-1]
		list.Next = new(base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(last.Updated.UnixNano(), 10) + " " + last.ID)))
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
	if !c.IsAdmin() {
		return "", translate.NewError(translate.KindForbidden, "missing_scope", "owner",
			"Only a token with the scope admin may see the conversations of others.")
	}
	return owner, nil
}

// position is the place after the conversation that a cursor names.
func (p *parameters) position() (at store.Position) {
	if p.Get("cursor") == "" {
		return at
	}
	text, err := base64.RawURLEncoding.DecodeString(p.Get("cursor"))
	nanos, id, _ := strings.Cut(string(text), " ")
	updated, bad := strconv.ParseInt(nanos, 10, 64)
	if err != nil || bad != nil || id == "" {
		p.wrong("cursor", `the "next_cursor" of an earlier answer`)
	}
	return store.Position{Updated: time.Unix(0, updated), ID: id}
}

func describeConversation(stored *store.Conversation) resource.Conversation {
	return resource.Conversation{
		ID: stored.ID, Title: stored.Title, Pinned: stored.Pinned, Dialect: stored.Dialect, Model: stored.Model,
		Status: string(stored.Status), Turns: stored.Turns, Last: stored.Last, Owner: stored.Owner,
		Created: resource.At(stored.Created), Updated: resource.At(stored.Updated),
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
	query := parametersOf(c)
	wantsResponses, wantsBranches := query.bool("responses", true), query.bool("branches", false)
	var turns []*store.Turn
	switch {
	case query.err != nil:
		return query.err
	case !wantsResponses:
	case wantsBranches:
		turns, err = c.Node.Stores.Get().Branches(c.Request.Context(), stored.Owner, stored.ID)
	default: // those on the way to the newest one
		turns, err = c.Node.Stores.Get().Chain(c.Request.Context(), stored.Owner, stored.Last)
	}
	if err != nil {
		return err
	}
	described := describeConversation(&stored)
	for _, turn := range turns {
		described.Responses = append(described.Responses, native.DescribeResponse(turn))
	}
	return c.Answer(described)
}

// editConversation is PATCH /api/v1/conversations/{id}: fields that are absent stay as they are.
func editConversation(c *endpoint.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	change, err := changeOf(body)
	if err != nil {
		return err
	}
	stored, err := conversation(c)
	if err == nil {
		err = c.Node.Stores.Get().Edit(c.Request.Context(), stored.Owner, stored.ID, change.title, change.pinned)
	}
	if err == nil {
		stored, err = conversation(c)
	}
	if err != nil {
		return err
	}
	return c.Answer(describeConversation(&stored))
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
		return translate.BadValue("updated_before",
			"must be a time such as 2026-01-31T12:00:00Z: all conversations whose last response is older are deleted.")
	}
	deleted, err := c.Node.Stores.Get().DeleteConversations(c.Request.Context(), owner, before)
	if err != nil {
		return err
	}
	return c.Answer(resource.DeletedConversations{Deleted: deleted})
}
