package api

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

// slowAfter is for how long a client may take nothing.
func slowAfter(most time.Duration) option {
	return func(_ *endpoint.Config, s *node.Settings) {
		s.SlowClient = most
		inParallel(s, 1)
	}
}

const endlessChat = `{"model":"tinychat","stream":true,"messages":[{"role":"user","content":"endless"}]}`

// endless is more than any buffer on the way holds.
func endless() *fakeengine.Script {
	return &fakeengine.Script{Rules: []fakeengine.Rule{{Contains: "endless", Answer: fakeengine.Answer{Pieces: []string{strings.Repeat("word ", 4000)}, Chunks: 5000}}}}
}

// stopReading asks for an endless answer over a connection that it doesn't read from.
func stopReading(t *testing.T, conn net.Conn, overHTTP2 bool) {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() })
	if !overHTTP2 {
		_, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(endlessChat), endlessChat)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	var header strings.Builder
	encoder := hpack.NewEncoder(&header)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", "/v1/chat/completions"}, {"content-type", "application/json"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	for _, err := range []error{
		// So large a window that it is the connection that takes no more, not the stream.
		framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1}),
		framer.WriteWindowUpdate(0, 1<<31-1-65535),
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(header.String()), EndHeaders: true}),
		framer.WriteData(1, true, []byte(endlessChat)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestSlowClient_IsGivenUp: one that stops reading holds its slot no longer than it may, though its connection stays.
func TestSlowClient_IsGivenUp(t *testing.T) {
	t.Parallel()
	for name, overHTTP2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, endless(), slowAfter(300*time.Millisecond))
			secure := httptest.NewUnstartedServer(s.Config.Handler)
			secure.EnableHTTP2 = overHTTP2
			secure.StartTLS()
			t.Cleanup(func() {
				secure.CloseClientConnections()
				secure.Close()
			})
			config := &tls.Config{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
			if overHTTP2 {
				config.NextProtos = []string{"h2"}
			}
			conn, err := tls.Dial("tcp", secure.Listener.Addr().String(), config)
			if err != nil {
				t.Fatal(err)
			}
			stopReading(t, conn, overHTTP2)
			s.fake.Wait(t, fakeengine.Is(fakeengine.Serving))
			s.fake.Wait(t, fakeengine.Is(fakeengine.Cancelled))
			patient := s.node.Settings() // on a busy machine the next one may look slow, too
			patient.SlowClient = 0
			if err := s.node.Push(2, patient); err != nil {
				t.Fatal(err)
			}
			if got := s.chat(""); got.status != 200 {
				t.Errorf("another: %d %s", got.status, got.body)
			}
			if got := s.do("POST", "/api/v1/models/unload", `{"instance_id":"lmcaddy/tinychat"}`); got.status != 200 {
				t.Errorf("unloading: %d %s", got.status, got.body)
			}
		})
	}
}

// TestSlowClient_SlowIsNotStopped: who takes something now and then is served to the end, and a deadline that was in force for
// one answer isn't for the next on the same connection.
func TestSlowClient_SlowIsNotStopped(t *testing.T) {
	t.Parallel()
	const patience = 1500 * time.Millisecond // the answer takes longer
	for name, overHTTP2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Delay: patience / 3}}}, slowAfter(patience))
			secure := httptest.NewUnstartedServer(s.Config.Handler)
			secure.EnableHTTP2 = overHTTP2
			secure.StartTLS()
			t.Cleanup(secure.Close)
			for range 2 {
				resp, err := secure.Client().Post(secure.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"tinychat","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || !strings.Contains(string(body), "[DONE]") || (resp.ProtoMajor == 2) != overHTTP2 {
					t.Errorf("%s: %s, %v", resp.Proto, body, err)
				}
			}
		})
	}
}
