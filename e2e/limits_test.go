package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// limitedSite is a site with tokens. %s is the store, %d the port.
const limitedSite = `{
	admin unix/{$LMCADDY_HOME}/run/admin.sock|0600
	lm {
		body_memory 256MiB
		engine llama_server {
			args --threads 1
		}
		%s
	}
}

http://:%d {
	bind 127.0.0.1
	lm_auth
	lm_api
}
`

// limited is such a server.
type limited struct {
	*harness.Server
	port int
}

func startLimited(t *testing.T, store string) limited {
	t.Helper()
	h := harness.NewHome(t)
	h.Env = append(h.Env, "GOMEMLIMIT=256MiB") // collects garbage in time, so that memory is what is in use
	port := harness.FreePort(t)
	s := h.Launch(port, "run", "--config", h.WriteFile("Caddyfile", fmt.Sprintf(limitedSite, store, port)))
	return limited{s, port}
}

// send sends a request with a token, and returns the response with its body unread.
func (l limited) send(token string, body any) *http.Response {
	l.T.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		l.T.Fatal(err)
	}
	req, err := http.NewRequestWithContext(l.T.Context(), http.MethodPost, l.Base+harness.ChatPath, bytes.NewReader(text))
	if err != nil {
		l.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.T.Fatal(err)
	}
	return resp
}

// ask is send for answers in one piece.
func (l limited) ask(token string, body any) harness.Reply {
	l.T.Helper()
	resp := l.send(token, body)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		l.T.Fatal(err)
	}
	return harness.Reply{Status: resp.StatusCode, Header: resp.Header, Body: string(text)}
}

// wantServed checks that another client's request is answered in time.
func (l limited) wantServed(token string) {
	l.T.Helper()
	begun := time.Now()
	l.ask(token, harness.Ask("Hello").With("max_tokens", 5)).Want(l.T, http.StatusOK)
	if took := time.Since(begun); took > harness.Patience {
		l.T.Errorf("another's request took %s", took)
	}
}

func idOf(token string) string { return strings.TrimPrefix(strings.Split(token, ":")[0], "sk-lm-") }

func TestLimits_TokensADay(t *testing.T) {
	t.Parallel()
	l := startLimited(t, "")
	other := created(t, l.Home, "--name", "other")
	l.wantServed(other)
	for name, request := range map[string]harness.Fields{
		"with max_tokens": harness.Long(300),
		"without":         harness.Ask("Tell me a long story"),
		"choices":         harness.Long(100).With("n", 4),
	} {
		t.Run(name, func(t *testing.T) {
			l := limited{l.Server, l.port}
			token := created(t, l.Home, "--name", name, "--tokens-per-day", "50")
			var all sync.WaitGroup
			var mu sync.Mutex
			statuses := map[int]int{}
			for range 100 {
				all.Go(func() {
					status := l.ask(token, request).Status
					mu.Lock()
					defer mu.Unlock()
					statuses[status]++
				})
			}
			l.wantServed(other)
			all.Wait()
			used, prompt := l.usedBy(token)
			t.Logf("%v; %d tokens are used, %d of them prompts", statuses, used, prompt)
			if statuses[200] == 0 || statuses[200]+statuses[429] != 100 {
				t.Errorf("answers: %v", statuses)
			}
			if used > 50+prompt {
				t.Errorf("%d tokens are used, of 50", used)
			}
		})
	}
}

// usedBy returns the number of tokens that a token has used, and that of its longest prompt.
func (l limited) usedBy(token string) (used, prompt int64) {
	l.T.Helper()
	req, err := http.NewRequestWithContext(l.T.Context(), http.MethodGet, l.Base+"/api/v1/usage", nil)
	if err != nil {
		l.T.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		l.T.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	for _, item := range gjson.GetBytes(text, "usage").Array() {
		used += item.Get("input_tokens").Int() + item.Get("output_tokens").Int()
		prompt = max(prompt, item.Get("input_tokens").Int()/max(1, item.Get("requests").Int()))
	}
	return used, prompt
}

// withheld opens a connection and sends a compressed chat, except for the last bytes.
func (l limited) withheld(token string, body []byte) net.Conn {
	l.T.Helper()
	conn := dialHostile(l.T, l.port)
	l.T.Cleanup(func() { _ = conn.Close() })
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s",
		harness.ChatPath, token, len(body), body[:len(body)-8])
	if err != nil {
		l.T.Fatal(err)
	}
	return conn
}

// statusOf returns the status of the answer on a connection, or 0 if there is none in time.
func statusOf(conn net.Conn, within time.Duration) int {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestLimits_BodiesThatNeverEnd(t *testing.T) {
	t.Parallel() // it mostly waits
	l := startLimited(t, "")
	huge := packed(60 << 20)
	other := created(t, l.Home, "--name", "other")
	l.wantServed(other)
	for name, tt := range map[string]struct {
		limits []string
		tokens int
		waits  int // at most, without an answer
	}{
		"two at a time":       {[]string{"--concurrent", "2"}, 1, 2},
		"one token":           {nil, 1, 2},
		"a token for each":    {nil, 30, 5},
		"each two at a time":  {[]string{"--concurrent", "2"}, 30, 5},
		"a thousand a minute": {[]string{"--requests-per-minute", "1000"}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			before := residentMemory(t, l.PID)
			var tokens []string
			for range tt.tokens {
				tokens = append(tokens, created(t, l.Home, append([]string{"--name", "attacker"}, tt.limits...)...))
			}
			var conns []net.Conn
			for i := range 30 {
				conns = append(conns, l.withheld(tokens[i%len(tokens)], huge))
			}
			answers := make(chan int, len(conns))
			for _, conn := range conns {
				go func() { answers <- statusOf(conn, harness.Patience) }()
			}
			l.wantServed(other)
			var most int64
			refused := map[int]int{}
			for range len(conns) - tt.waits {
				refused[<-answers]++
				most = max(most, residentMemory(t, l.PID))
			}
			for _, conn := range conns { // requests that still wait get no answer
				_ = conn.Close()
			}
			for range tt.waits {
				refused[<-answers]++
			}
			waits := refused[0]
			t.Logf("answers: %v; the resident memory went from %d to %d MiB", refused, before>>20, most>>20)
			if waits > tt.waits || refused[429]+refused[503]+waits != 30 {
				t.Errorf("%d of 30 are still read: %v", waits, refused)
			}
			if most > 450<<20 { // 30 bodies are 1800 MiB
				t.Errorf("the resident memory is %d MiB", most>>20)
			}
		})
	}
	token := created(t, l.Home, "--name", "attacker", "--concurrent", "2")
	announced := func() int { // the answer to a request whose body is announced, but not sent
		conn := dialHostile(t, l.port)
		t.Cleanup(func() { _ = conn.Close() })
		_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 60000000\r\nExpect: 100-continue\r\n\r\n", harness.ChatPath, token)
		if err != nil {
			t.Fatal(err)
		}
		return statusOf(conn, harness.Patience)
	}
	for range 2 {
		if got := announced(); got != http.StatusContinue {
			t.Fatalf("a body within the limits: %d", got)
		}
	}
	if got := announced(); got != http.StatusTooManyRequests {
		t.Errorf("the third is not refused before its body is sent: %d", got)
	}
}

// packed returns a compressed chat of n bytes.
func packed(size int64) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = fmt.Fprintf(w, `{"model":%q,"messages":[{"role":"user","content":"`, harness.Model)
	_, _ = io.Copy(w, io.LimitReader(ones{}, size))
	_, _ = io.WriteString(w, `"}]}`)
	_ = w.Close()
	return buf.Bytes()
}

// ones is an endless text.
type ones struct{}

func (ones) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '1'
	}
	return len(p), nil
}

// wantEnded revokes the token of a running stream, which must end with an error that says so.
func wantEnded(t *testing.T, from *bufio.Reader, revoke func()) {
	t.Helper()
	if _, err := from.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	revoke()
	revoked := time.Now()
	rest, err := io.ReadAll(from)
	took := time.Since(revoked)
	t.Logf("the stream ended %s after its token was revoked", took)
	if err != nil || !strings.Contains(string(rest), "has been revoked") {
		t.Errorf("it ended after %s, %v: …%s", took, err, string(rest)[max(0, len(rest)-300):])
	}
}

func TestLimits_RevokingEndsStreams(t *testing.T) {
	t.Parallel()
	l := startLimited(t, "")
	other := created(t, l.Home, "--name", "other")
	token := created(t, l.Home, "--name", "lost")
	l.wantServed(other)
	resp := l.send(token, harness.Long(7000).With("stream", true))
	defer resp.Body.Close()
	wantEnded(t, bufio.NewReader(resp.Body), func() {
		wantDone(t, l.Command("token", "revoke", idOf(token)))
	})
	l.ask(token, harness.Ask("Hello")).Want(t, http.StatusUnauthorized)
	l.wantServed(other)
}

func TestLimits_RevokingEndsStreamsOnAllServers(t *testing.T) {
	t.Parallel()
	url := harness.Postgres(t)
	var both [2]limited
	for i := range both {
		both[i] = startLimited(t, fmt.Sprintf("store postgres %q", url))
	}
	token := created(t, both[0].Home, "--name", "lost")
	resp := both[1].send(token, harness.Long(7000).With("stream", true))
	defer resp.Body.Close()
	wantEnded(t, bufio.NewReader(resp.Body), func() {
		wantDone(t, both[0].Command("token", "revoke", idOf(token)))
	})
}
