package api

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
)

func TestBody_ThatNeverEnds(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) { c.BodyPatience = 50 * time.Millisecond })
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

// deadlines records those of a connection.
type deadlines struct {
	*httptest.ResponseRecorder

	all []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.all = append(d.all, at)
	return nil
}

// The deadline is the body's alone: an answer may take longer, and the connection may be used again.
func TestBody_DeadlineEndsWithIt(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	s.Config.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, s.URL+"/v1/chat/completions",
		strings.NewReader(`{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`)))
	if w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if n := len(w.all); n < 2 || w.all[0].IsZero() || !w.all[n-1].IsZero() {
		t.Errorf("the deadlines are %v; the last must be none", w.all)
	}
}
