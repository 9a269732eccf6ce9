package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// LogQuery selects records of the server's log. An empty field lets all records pass.
type LogQuery struct {
	Limit   int
	Level   string // the least
	Model   string
	Request string
	Since   time.Time
	Engine  bool // also what engines write, whatever the level
}

func (q LogQuery) path(isFollowed bool) string {
	values := url.Values{"limit": {strconv.Itoa(q.Limit)}}
	for name, value := range map[string]string{"level": q.Level, "model": q.Model, "request": q.Request} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if !q.Since.IsZero() {
		values.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	for name, on := range map[string]bool{"engine": q.Engine, "follow": isFollowed} {
		if on {
			values.Set(name, "true")
		}
	}
	return "/api/v1/logs?" + values.Encode()
}

// Logs returns the newest records, oldest first.
func (c *Client) Logs(ctx context.Context, q LogQuery) (resource.Logs, error) {
	return get[resource.Logs](ctx, c, q.path(false))
}

// FollowLogs calls each with the newest records, and with every further one. It returns nil when the server ends.
func (c *Client) FollowLogs(ctx context.Context, q LogQuery, each func(resource.LogRecord) error) error {
	return c.Stream(ctx, http.MethodGet, q.path(true), nil, decoded(each))
}
