package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

const conversations = "/api/v1/conversations"

// Conversations returns a page of an owner's conversations, the last updated first; those alone whose titles or texts have some words,
// unless these are empty. The owner is nil for the client's own; the cursor is empty for the first page.
func (c *Client) Conversations(ctx context.Context, owner *string, words, cursor string, limit int) (resource.Conversations, error) {
	query := ownedBy(owner)
	query.Set("limit", strconv.Itoa(limit))
	if words != "" {
		query.Set("query", words)
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	return get[resource.Conversations](ctx, c, conversations+"?"+query.Encode())
}

// Conversation returns a conversation by its id, or the beginning of it, with its responses or without them.
func (c *Client) Conversation(ctx context.Context, owner *string, id string, withResponses bool) (resource.Conversation, error) {
	query := ownedBy(owner)
	query.Set("responses", strconv.FormatBool(withResponses))
	return get[resource.Conversation](ctx, c, conversations+"/"+url.PathEscape(id)+"?"+query.Encode())
}

// EditConversation changes the title of a conversation, or whether it is pinned, and returns it.
func (c *Client) EditConversation(ctx context.Context, owner *string, id string, change map[string]any) (resource.Conversation, error) {
	return send[resource.Conversation](ctx, c, http.MethodPatch, conversations+"/"+url.PathEscape(id)+"?"+ownedBy(owner).Encode(), change)
}

// ImportConversation stores a conversation, as JSON that the server returned for one, under a new id.
func (c *Client) ImportConversation(ctx context.Context, exported json.RawMessage) (resource.Conversation, error) {
	return send[resource.Conversation](ctx, c, http.MethodPost, conversations, exported)
}

// DeleteConversation deletes a conversation.
func (c *Client) DeleteConversation(ctx context.Context, owner *string, id string) error {
	return c.ask(ctx, http.MethodDelete, conversations+"/"+url.PathEscape(id)+"?"+ownedBy(owner).Encode(), nil, nil)
}

// DeleteConversations deletes the conversations that were last updated before a time, and returns their number.
func (c *Client) DeleteConversations(ctx context.Context, owner *string, before time.Time) (int, error) {
	query := ownedBy(owner)
	query.Set("updated_before", before.UTC().Format(time.RFC3339))
	deleted, err := send[resource.DeletedConversations](ctx, c, http.MethodDelete, conversations+"?"+query.Encode(), nil)
	return deleted.Deleted, err
}

func ownedBy(owner *string) url.Values {
	query := url.Values{}
	if owner != nil {
		query.Set("owner", *owner)
	}
	return query
}

const warm = "/api/v1/warm"

// Warm returns the saved states of conversations.
func (c *Client) Warm(ctx context.Context) (resource.Warm, error) {
	return get[resource.Warm](ctx, c, warm)
}

// ClearWarm deletes the saved states of a model, or all of them if the name is empty.
func (c *Client) ClearWarm(ctx context.Context, model string) (resource.WarmCleared, error) {
	path := warm
	if model != "" {
		path += "?model=" + url.QueryEscape(model)
	}
	return send[resource.WarmCleared](ctx, c, http.MethodDelete, path, nil)
}
