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
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{\"model\":")
	answer, err := io.ReadAll(conn) // to its end: the connection is closed
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") || !strings.Contains(string(answer), `"code":"slow_body"`) {
		t.Errorf("%s, %v", answer, err)
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
