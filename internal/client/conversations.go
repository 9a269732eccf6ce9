package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

const conversations = "/api/v1/conversations"

// Conversations returns a page of an owner's conversations, the last updated first. The owner is nil for the client's own; the
// cursor is empty for the first page.
func (c *Client) Conversations(ctx context.Context, owner *string, cursor string, limit int) (resource.Conversations, error) {
	query := ownedBy(owner)
	query.Set("limit", strconv.Itoa(limit))
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

// DeleteConversation deletes a conversation.
func (c *Client) DeleteConversation(ctx context.Context, owner *string, id string) error {
	return c.Delete(ctx, conversations+"/"+url.PathEscape(id)+"?"+ownedBy(owner).Encode(), nil)
}

// DeleteConversations deletes the conversations that were last updated before a time, and returns their number.
func (c *Client) DeleteConversations(ctx context.Context, owner *string, before time.Time) (int, error) {
	query := ownedBy(owner)
	query.Set("updated_before", before.UTC().Format(time.RFC3339))
	var deleted resource.DeletedConversations
	err := c.Delete(ctx, conversations+"?"+query.Encode(), &deleted)
	return deleted.Deleted, err
}

func ownedBy(owner *string) url.Values {
	query := url.Values{}
	if owner != nil {
		query.Set("owner", *owner)
	}
	return query
}
