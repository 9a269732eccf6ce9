package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// padded returns a chat of about size bytes.
func padded(text string, size int) string {
	return `{"model":"tinychat","messages":[{"role":"user","content":"` + text + `"}],"user":"` + strings.Repeat("a", size) + `"}`
}

// part sends the header of a chat and some of its body, and gives what is answered to that.
func (s *server) part(secret, body string, header ...string) *bufio.Reader {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s\r\n%s", secret, strings.Join(append(header, ""), "\r\n"), body)
	if err != nil {
		s.t.Fatal(err)
	}
	return bufio.NewReader(conn)
}

func read(t *testing.T, from *bufio.Reader) answer {
	t.Helper()
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// A token's limits are taken before a body is read: else all that a limit keeps from the engine is held in memory.
func TestBody_LimitsComeFirst(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	secret, _ := s.token(access.Token{Limits: access.Limits{Concurrent: 2}})
	body := gzipped(padded("hi", 1<<20))
	for range 2 {
		s.part(secret, body[:len(body)-8], "Content-Encoding: gzip", "Content-Length: "+strconv.Itoa(len(body)))
	}
	other, _ := s.token(access.Token{})
	testkit.Eventually(t, "both are admitted, and a third isn't without a byte of its body", func() bool {
		got := read(t, s.part(secret, "", "Expect: 100-continue", "Content-Length: 1000000"))
		return got.status == 429 && got.code() == "rate_limit_exceeded" && got.header.Get("Retry-After") == "1"
	})
	if got := s.with(other, "POST", "/v1/chat/completions", padded("hi", 0)); got.status != 200 {
		t.Errorf("another's: %d %s", got.status, got.body)
	}
}

func TestBody_MemoryIsBounded(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Contains: "wait", Gate: "go"}}}, func(_ *endpoint.Config, settings *node.Settings) {
		settings.BodyMemory = 4 << 20
	}))
	refused := func(got answer, status int, code string) {
		t.Helper()
		if got.status != status || got.code() != code || got.header.Get("Retry-After") != "1" {
			t.Errorf("%d %v %s, want %d %s", got.status, got.header, got.body, status, code)
		}
	}
	var secrets [5]string
	for i := range secrets {
		secrets[i], _ = s.token(access.Token{})
	}
	ask := func(secret string, size int) answer {
		return s.with(secret, "POST", "/v1/chat/completions", padded("wait", size))
	}
	held := make(chan answer, 4)
	for i := range 4 { // a quarter each; alone, each may have more
		go func() { held <- ask(secrets[i], 1000<<10) }()
	}
	testkit.Eventually(t, "the bodies of requests under way are counted", func() bool { return s.node.Access.Bodies.Held() >= 4000<<10 })
	refused(ask(secrets[0], 200<<10), 503, "server_busy")
	refused(ask(secrets[4], 200<<10), 503, "server_busy")
	refused(s.with(secrets[4], "POST", "/api/v1/models/load", padded("wait", 200<<10)), 503, "server_busy")
	s.fake.Release("go")
	for range 4 {
		if got := <-held; got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	testkit.Eventually(t, "no body is counted any more", func() bool { return s.node.Access.Bodies.Held() == 0 })
}

func TestBody_MemoryOfEachToken(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { settings.BodyMemory = 4 << 20 }))
	greedy, _ := s.token(access.Token{})
	other, _ := s.token(access.Token{})
	body := padded("hi", 900<<10)
	s.part(greedy, body[:len(body)-8], "Content-Length: "+strconv.Itoa(len(body)))
	testkit.Eventually(t, "the body is read", func() bool { return s.node.Access.Bodies.Held() >= 900<<10 })
	if got := s.with(greedy, "POST", "/v1/chat/completions", body); got.status != 429 || got.code() != "rate_limit_exceeded" || got.header.Get("Retry-After") != "1" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	if got := s.with(greedy, "POST", "/v1/chat/completions", padded("hi", 1000)); got.status != 200 {
		t.Errorf("a small one: %d %s", got.status, got.body)
	}
	if got := s.with(other, "POST", "/v1/chat/completions", body); got.status != 200 {
		t.Errorf("another's: %d %s", got.status, got.body)
	}
}

// TestBody_HalfASurrogatePairIsOneErrorEverywhere: each dialect says the same, in its own envelope.
func TestBody_HalfASurrogatePairIsOneErrorEverywhere(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{})
	for _, path := range []string{
		"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/rerank", "/v1/messages", "/v1/messages/count_tokens",
		"/api/v0/chat/completions", "/api/v0/completions", "/api/v0/embeddings", "/api/v1/chat", "/api/v1/models/load",
	} {
		got := s.do("POST", path, `{"model":"tinychat","input":"a\ud83cz"}`)
		const want = "The request body has half a surrogate pair at byte 30, which is no character: send both halves, or UTF-8."
		if message := gjson.Get(got.body, "error.message").Str; got.status != 400 || message != want {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
