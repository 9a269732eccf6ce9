package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// hostileSite is a server with an open site on loopback, and one that requires tokens and writes an access log. Bodies are
// limited, since the garbage of large ones would hide leaks.
const hostileSite = `{
	grace_period 15s
	admin unix/{$LMCADDY_HOME}/run/admin.sock|0600
	lm {
		engine llama_server {
			args --threads 1
		}
		hub http://127.0.0.1:1
	}
}

http://:%d {
	bind 127.0.0.1
	lm_api {
		max_body 2MiB
	}
}

http://:%d {
	bind 127.0.0.1
	log {
		output file {$LMCADDY_HOME}/access.log
		format filter {
			wrap json
			fields {
				request>headers>X-Api-Key delete
			}
		}
	}
	lm_auth
	lm_api {
		max_body 2MiB
	}
}
`

// TestHostile sends thousands of requests that no honest client sends, generated from rules and a seed. None may make the
// server panic, fail, reveal a secret or grow.
func TestHostile(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	open, guarded := harness.FreePort(t), harness.FreePort(t)
	s := h.Launch(open, "run", "--config", h.WriteFile("Caddyfile", fmt.Sprintf(hostileSite, open, guarded)))
	token := created(t, h, "--name", "attacker", "--scopes", "admin")
	s.Post(harness.LoadPath, harness.Fields{"model": harness.Model}).Want(t, http.StatusOK)
	corpus := hostileRequests(token)
	if len(corpus) < 500 {
		t.Fatalf("there are %d requests alone", len(corpus))
	}
	for range 20 { // that stay silent while the others run
		conn := dialHostile(t, open)
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n{", harness.ChatPath)
	}
	const rounds = 2
	several := func() {
		for range rounds {
			sendHostile(t, corpus, open, guarded)
		}
	}
	several() // until the buffers have their final size
	before := residentMemory(t, s.PID)
	several()
	after := residentMemory(t, s.PID)
	t.Logf("%d requests, %d times; the resident memory went from %d to %d MiB in the second half", len(corpus), 2*rounds, before>>20, after>>20)
	if after > before+before/10+(16<<20) {
		t.Errorf("the memory grows: from %d to %d bytes", before, after)
	}
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("after all of them: %q", a.Content)
	}
	access, err := os.ReadFile(s.Dir + "/access.log")
	if err != nil || len(access) < 1000 {
		t.Errorf("the access log has %d bytes, %v", len(access), err)
	}
	for name, log := range map[string]string{"the log": s.Log(), "the access log": string(access)} {
		if at := regexp.MustCompile(`(?i)\bpanic|goroutine \d+ \[`).FindStringIndex(log); at != nil {
			t.Errorf("in %s: %.2000s", name, log[max(0, at[0]-300):])
		}
	}
	wantNoSecrets(t, s, token)
	if engines := s.Engines(); len(engines) != 1 {
		t.Errorf("engines: %v", engines)
	}
}

func dialHostile(t testing.TB, port int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", harness.Address(port))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// sendHostile sends each request once, several concurrently, and checks the answers.
func sendHostile(t *testing.T, corpus []hostile, open, guarded int) {
	t.Helper()
	next := make(chan hostile)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for r := range next {
				port := open
				if r.guarded {
					port = guarded
				}
				r.check(t, r.send(port))
			}
		})
	}
	for _, r := range corpus {
		next <- r
	}
	close(next)
	senders.Wait()
}

// send returns the answer, if there is one. It closes its side of the connection after the request, whatever the request says.
func (r hostile) send(port int) []byte {
	conn, err := net.Dial("tcp", harness.Address(port))
	if err != nil {
		return []byte(err.Error())
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	go func() {
		_, _ = conn.Write(r.bytes) // the server may not read all of it
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	answer, _ := io.ReadAll(io.LimitReader(conn, 1<<20))
	return answer
}

var statusLine = regexp.MustCompile(`^HTTP/1\.[01] (\d{3}) `)

// check fails the test for an answer that no request should get.
func (r hostile) check(t *testing.T, answer []byte) {
	t.Helper()
	if len(answer) == 0 {
		return // the connection was closed, which is allowed for anything but HTTP
	}
	if bytes.HasPrefix(r.bytes, []byte("PRI ")) && len(answer) > 9 && answer[3] == 4 {
		return // the settings at the beginning of HTTP/2
	}
	line := statusLine.FindSubmatch(answer)
	if line == nil {
		t.Errorf("%s: no HTTP: %.300q", r.name, answer)
		return
	}
	status, _ := strconv.Atoi(string(line[1]))
	header, _, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	switch {
	case status == http.StatusNotImplemented, status == http.StatusHTTPVersionNotSupported: // the right answers to some requests
	case status == http.StatusBadGateway && bytes.Contains(answer, []byte("hub_failed")): // there is no hub
	case status == http.StatusInsufficientStorage:
	case status >= 500:
		t.Errorf("%s: %.600s", r.name, answer)
	}
	if bytes.Contains(bytes.ToLower(header), []byte("\nx-injected")) {
		t.Errorf("%s: a header of the request's own making: %s", r.name, header)
	}
	if bytes.Contains(answer, []byte("root:x:")) {
		t.Errorf("%s: a file of the system: %.600s", r.name, answer)
	}
}

// residentMemory is the resident memory of a process, in bytes.
func residentMemory(t testing.TB, pid int) int64 {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(content))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
