package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// maxLine bounds a line of a stream, in bytes. The longest ones contain a whole answer.
const maxLine = 64 << 20

// ErrStop makes Stream return nil.
var ErrStop = errors.New("enough of the stream was read")

// ErrCut says that a stream ended too early.
var ErrCut = errors.New("the server's answer was cut off")

// Stream sends a request and calls each with the data of every server-sent event, which is valid until each returns. It returns
// when the stream ends, or with the first error; [ErrStop] makes it return nil.
func (c *Client) Stream(ctx context.Context, method, path string, body any, each func(data []byte) error) error {
	resp, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if !isEventStream(resp) {
		return fmt.Errorf("the server at %s doesn't answer like an lmcaddy server: it sends %q, not a stream of events", c.Address(),
			resp.Header.Get("Content-Type"))
	}
	return follow(ctx, resp, each)
}

// open sends the request of a stream. One that only asks waits for the beginning of the answer no longer than other questions.
func (c *Client) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	if method != http.MethodGet { // it may wait for a model
		return c.request(ctx, method, path, eventStream, body)
	}
	opening, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.silence, func() { cancel(&SilentError{c.Address(), c.silence}) })
	defer timer.Stop()
	resp, err := c.request(opening, method, path, eventStream, nil)
	if silent, ok := errors.AsType[*SilentError](context.Cause(opening)); ok && err != nil {
		return nil, silent
	}
	return resp, err
}

func decoded[T any](each func(T) error) func(data []byte) error {
	return func(data []byte) error {
		var event T
		if err := json.Unmarshal(data, &event); err != nil {
			return fmt.Errorf("the server's answer can't be read: %w", err)
		}
		return each(event)
	}
}

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

func isEventStream(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), eventStream)
}

func follow(ctx context.Context, resp *http.Response, each func(data []byte) error) error {
	err := readEvents(resp.Body, each)
	switch {
	case errors.Is(err, ErrStop):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return err
}

// readEvents reads server-sent events to the end of a stream. It ignores all fields but data.
func readEvents(stream io.Reader, each func(data []byte) error) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxLine)
	var data []byte
	has := false
	for lines.Scan() {
		line := lines.Bytes() // without LF or CRLF
		if len(line) == 0 {
			if has {
				if err := each(data); err != nil {
					return err
				}
			}
			data, has = data[:0], false
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue // a comment, or another field
		}
		if has {
			data = append(data, '\n')
		}
		data, has = append(data, bytes.TrimPrefix(value, []byte{' '})...), true
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w (%w)", ErrCut, err)
	}
	return nil // an event ends with a blank line
}

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
