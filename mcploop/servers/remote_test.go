package servers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/lmcaddy/lmcaddy/internal/testing/closedport"
)

func TestRemote_WhatIsNoServer(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", code) }
	}
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"HTML": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<p>secret")
		}, "it answered with text/html"},
		"garbage": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{{{")
		}, "doesn't answer like an MCP server"},
		"garbage events": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: what\n\n")
		}, "doesn't answer like an MCP server"},
		"nothing": {func(http.ResponseWriter, *http.Request) {}, "doesn't answer like an MCP server"},
		"401":     {status(401), "HTTP status 401: check its headers"},
		"403":     {status(403), "HTTP status 403: check its headers"},
		"404":     {status(404), "HTTP status 404: check the path of its URL"},
		"429":     {status(429), "HTTP status 429."},
		"500":     {status(500), "HTTP status 500."},
		"breaks off": {func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, "broke off the connection"},
		"version": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, request{ID: json.RawMessage("1")}, `{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{}}`)
		}, `version "1999-01-01"`},
		"too long": {func(w http.ResponseWriter, _ *http.Request) {
			reply(w, request{ID: json.RawMessage("1")}, `{"x":"`+strings.Repeat("x", maxMessage)+`"}`)
		}, "more than 4 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := serve(t, test.handler)
			_, err := newPool(t, nil).Remote(t.Context(), "o", Remote{Label: "r", URL: strings.Replace(url, "http://", "http://user:secret@", 1) + "/mcp?key=secret"})
			refused(t, err, test.want)
			if want := fmt.Sprintf("Unable to connect to remote MCP server 'r' at url '%s/mcp'.", url); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("the error is %q, want it to begin with %q", err, want)
			}
		})
	}
}

func TestRemote_WhatCannotBeReached(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for name, test := range map[string]struct{ url, want string }{
		"refused":     {"http://" + closedport.Address(t), "It refused the connection"},
		"certificate": {secure.URL, "Its TLS certificate is not valid"},
		"no TLS":      {strings.Replace(plain.URL, "http:", "https:", 1), "It doesn't speak TLS"},
		"no such":     {"http://nowhere.invalid/", "host"},
		"no URL":      {"example.com/mcp", "its url must look like"},
		"scheme":      {"file:///etc/secret", "its url must look like"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newPool(t, nil).Remote(t.Context(), "o", Remote{Label: "r", URL: test.url})
			refused(t, err, test.want)
		})
	}
}

func TestRemote_OnlyPublicAddresses(t *testing.T) {
	t.Parallel()
	asked := new(atomic.Int64)
	url := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0", "localhost", "127.0.0.1."} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			p := newPool(t, nil)
			p.Set(Settings{PrivateHosts: []string{"other.example", "127.0.0.1:1", "192.168.0.0/16"}})
			target := "http://" + host + ":" + port + "/mcp"
			_, err := p.Remote(t.Context(), "o", Remote{Label: "r", URL: target + "?key=secret"})
			if host == "127.0.0.1." { // a name, which doesn't exist
				refused(t, err, "Unable to connect")
				return
			}
			refused(t, err, "Unable to connect to remote MCP server 'r' at url '"+target+"'. URL resolves to a non-public address. "+
				"We only allow public addresses for dynamic remote MCP connections. ")
		})
	}
	t.Cleanup(func() {
		if n := asked.Load(); n != 0 {
			t.Errorf("%d requests arrived", n)
		}
	})
}

func TestRemote_RedirectsStayOnTheOrigin(t *testing.T) {
	t.Parallel()
	asked := new(atomic.Int64)
	elsewhere := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	here := serve(t, redirects(elsewhere))
	connect := func(path string) error {
		s, err := newPool(t, nil).Remote(t.Context(), "o", Remote{Label: "r", URL: here + path, Headers: map[string]string{"X-Key": "key"}})
		if err == nil {
			s.Release()
		}
		return err
	}
	for path, want := range map[string]string{
		"/other": "leads to another origin", "/loopback": "leads to another origin", "/scheme": "leads to another origin",
		"/sse": "leads to another origin", "/circle": "redirects again and again",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			refused(t, connect(path), want)
		})
	}
	t.Run("/same", func(t *testing.T) {
		t.Parallel()
		if err := connect("/same"); err != nil {
			t.Error(err, causeOf(err))
		}
	})
	t.Cleanup(func() {
		if n := asked.Load(); n != 0 {
			t.Errorf("%d requests reached another origin", n)
		}
	})
}

// redirects is a server that wants a header, with paths that lead to it and to elsewhere.
func redirects(elsewhere string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/good", func(w http.ResponseWriter, r *http.Request) {
		var message request
		switch {
		case r.Header.Get("X-Key") != "key":
			w.WriteHeader(http.StatusUnauthorized)
		case json.NewDecoder(r.Body).Decode(&message) != nil || message.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			reply(w, message, hello)
		}
	})
	for path, to := range map[string]string{
		"/same": "/good", "/circle": "/circle", "/other": elsewhere, "/loopback": strings.Replace(elsewhere, "127.0.0.1", "localhost", 1),
	} {
		mux.Handle(path, http.RedirectHandler(to, http.StatusTemporaryRedirect))
	}
	mux.HandleFunc("/scheme", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://"+r.Host+"/good", http.StatusPermanentRedirect)
	})
	mux.HandleFunc("/sse", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", elsewhere)
		if err := http.NewResponseController(w).Flush(); err == nil {
			<-r.Context().Done()
		}
	})
	return mux
}

func TestRemote_AListedHostMayBePrivate(t *testing.T) {
	t.Parallel()
	url := strings.Replace(serve(t, server.NewStreamableHTTPServer(newServer())), "127.0.0.1", "localhost", 1) + "/mcp"
	p := newPool(t, nil)
	p.Set(Settings{PrivateHosts: []string{"localhost"}})
	exercise(t, remote(t, p, url))
	p.Set(Settings{PrivateHosts: []string{"127.0.0.1"}})
	_, err := p.Remote(t.Context(), "o", Remote{Label: "r", URL: url})
	refused(t, err, "non-public address")
}

// TestConnect_ServersThatHang connects to servers that accept connections and say nothing.
func TestConnect_ServersThatHang(t *testing.T) {
	t.Parallel()
	p := newPool(t, nil)
	c := &connector{log: p.log, timeout: p.callTimeout, private: p.privateHosts, handshake: 400 * time.Millisecond}
	for name, test := range map[string]struct {
		kind    string
		handler http.HandlerFunc
	}{
		"a request": {"", func(_ http.ResponseWriter, r *http.Request) { hang(r) }},
		"a stream": {"", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if http.NewResponseController(w).Flush() == nil {
				hang(r)
			}
		}},
		"an endpoint": {"sse", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if http.NewResponseController(w).Flush() == nil {
				hang(r)
			}
		}},
		"messages": {"sse", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "event: endpoint\ndata: /messages\n\n")
				if http.NewResponseController(w).Flush() != nil {
					return
				}
			}
			hang(r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := target{Config: Config{Label: "r", URL: serve(t, test.handler), Type: test.kind}}
			_, err := c.connect(t.Context(), one)
			if err == nil || one.describe(err, false).Message != "Unable to connect to MCP server 'r'. It didn't answer within 400ms." {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// hang reads a request, without which its end isn't noticed, and waits for its end.
func hang(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// TestSecrets_DoNotComeBack from a server that quotes in its errors what it was sent.
func TestSecrets_DoNotComeBack(t *testing.T) {
	t.Parallel()
	p := NewPool(Options{File: filepath.Join(t.TempDir(), "mcp.json"), Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(p.Close)
	p.Set(Settings{PrivateHosts: []string{"127.0.0.1"}})
	quoting := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message request
		_ = json.NewDecoder(r.Body).Decode(&message) // of a notification as well
		w.Header().Set("Content-Type", "application/json")
		quoted, _ := json.Marshal(fmt.Sprint("wrong: ", r.Header["Authorization"], r.Header["X-Api-Key"], r.Header["X-Region"])) // of a text
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}`, message.ID, quoted)
	}))
	_, err := p.Remote(t.Context(), "o", Remote{Label: "r", URL: quoting, Headers: map[string]string{"Authorization": "Bearer top-secret", "X-Api-Key": "secret-key", "X-Region": "europe"}})
	cause := ""
	for ; err != nil; err = errors.Unwrap(err) {
		cause += err.Error() + "\n"
	}
	if !strings.Contains(cause, "europe") || strings.Contains(cause, "top-secret") || strings.Contains(cause, "secret-key") {
		t.Errorf("%s", cause)
	}
}

// TestSecrets_AreNotLogged looks at all that is logged about servers that work and servers that don't.
func TestSecrets_AreNotLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	var mu sync.Mutex
	text := slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := NewPool(Options{File: filepath.Join(t.TempDir(), "mcp.json"), Log: text})
	writeFile(t, p.file.path, map[string]any{
		"one": program("script", "KEY=secret"),
		"two": map[string]any{"command": "/no/such", "args": []string{"secret"}},
		"bad": map[string]any{"command": "x", "env": "secret"},
	})
	p.Set(Settings{PrivateHosts: []string{"127.0.0.1"}})
	url := serve(t, server.NewStreamableHTTPServer(newServer())) + "/mcp"
	failing := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusInternalServerError) }))
	unheard := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message request
		if json.NewDecoder(r.Body).Decode(&message) != nil || message.ID == nil {
			panic(http.ErrAbortHandler) // nor does it take the notification that follows the handshake
		}
		w.Header().Set("Mcp-Session-Id", "secret")
		reply(w, message, hello)
	}))
	for _, url := range []string{url, failing, unheard, "http://127.0.0.1:1"} {
		s, err := p.Remote(t.Context(), "o", Remote{Label: "r", URL: url + "?key=secret", Headers: map[string]string{"X": "secret"}})
		if err == nil {
			_, _ = s.Call(t.Context(), "echo", []byte(`{"text":"secret"}`))
			s.Release()
		}
	}
	for _, label := range []string{"one", "two", "bad"} {
		s, err := p.Plugin(t.Context(), label)
		if err == nil {
			_, _ = s.Call(t.Context(), "die", []byte(`{"text":"secret"}`))
			s.Release()
		}
	}
	p.Close()
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"/no/such", "HTTP status 500", "connection refused", "out of luck", "exit status 9", `entry \"bad\"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log doesn't have %q", want)
		}
	}
	if strings.Contains(log.String(), "secret") || t.Failed() {
		t.Errorf("the log is\n%s", log.String())
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *strings.Builder
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}
