package api

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

func TestBody_ThatNeverEnds(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(c *Config, _ *node.Settings) { c.bodyPatience = 50 * time.Millisecond })
	for path, want := range map[string]string{"/v1/chat/completions": "400 slow_body", "/v1/nope": "404 unknown_endpoint"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{\"model\":", path)
		answer, err := io.ReadAll(conn) // to its end: the connection is closed
		status, code, _ := strings.Cut(want, " ")
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+status) || !strings.Contains(string(answer), `"code":"`+code+`"`) {
			t.Errorf("%s: %s, %v", path, answer, err)
		}
	}
}

// The deadline is the body's alone: an answer may take longer, and the connection may be used again.
func TestBody_DeadlineEndsWithIt(t *testing.T) {
	t.Parallel()
	const patience = 20 * time.Millisecond
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{FirstDelay: 10 * patience}}}, func(c *Config, _ *node.Settings) { c.bodyPatience = patience })
	s.Client().Transport.(*http.Transport).MaxConnsPerHost = 1
	for range 2 {
		if got := s.chat(""); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}
