package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// raw is a server over HTTP that does as it should until it is asked for tools or calls.
func raw(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, message request)) (url string) {
	t.Helper()
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message request
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case json.NewDecoder(r.Body).Decode(&message) != nil:
			w.WriteHeader(http.StatusBadRequest)
		case message.Method == "initialize":
			reply(w, message, hello)
		case message.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			answer(w, r, message)
		}
	}))
}

func reply(w http.ResponseWriter, r request, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

// refused checks that an error is a ConnectionError with a text in its message, and without secrets.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	refusal, ok := errors.AsType[*ConnectionError](err)
	if !ok || !strings.Contains(refusal.Message, want) {
		t.Fatalf("the error is %v (cause: %v), want one with %q", err, causeOf(err), want)
	}
	if text := fmt.Sprint(refusal.Message, refusal.Cause); strings.Contains(text, "secret") {
		t.Errorf("the error has a secret: %s", text)
	}
}

func TestTools_OfHostileServers(t *testing.T) {
	t.Parallel()
	page := func(tools, cursor string) string { return fmt.Sprintf(`{"tools":[%s],"nextCursor":%q}`, tools, cursor) }
	many := strings.TrimSuffix(strings.Repeat(`{"name":"x","inputSchema":{}},`, maxTools+1), ",")
	var n atomic.Int64
	for name, test := range map[string]struct {
		answer func(r request) string
		want   string
	}{
		"too many": {func(request) string { return page(many, "") }, "more than 1024 tools"},
		"endless":  {func(request) string { return page("", fmt.Sprint(n.Add(1))) }, "more than 64 pages"},
		"a circle": {func(request) string { return page("", "again") }, "never ends"},
		"a back link": {func(r request) string {
			return page("", map[string]string{"": "a", "a": "b", "b": "a"}[r.Params.Cursor])
		}, "never ends"},
		"too long": {func(request) string { return page(`{"name":"`+strings.Repeat("x", maxMessage)+`"}`, "") }, "more than 4 MiB"},
		"long pages": {func(request) string {
			return page(`{"name":"`+strings.Repeat("x", maxMessage-1000)+`"}`, fmt.Sprint(n.Add(1)))
		}, "too long"},
		"no list":      {func(request) string { return `{"tools":{}}` }, "its list of tools is none"},
		"nothing":      {func(request) string { return `{}` }, "its list of tools is none"},
		"no object":    {func(request) string { return `[]` }, "its result is no object"},
		"a text":       {func(request) string { return `"tools"` }, "its result is no object"},
		"wrong cursor": {func(request) string { return `{"tools":[],"nextCursor":5}` }, "its list of tools is none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := remote(t, newPool(t, nil), raw(t, func(w http.ResponseWriter, _ *http.Request, r request) { reply(w, r, test.answer(r)) }))
			_, err := s.Tools(t.Context())
			refused(t, err, test.want)
		})
	}
}

func TestTools_AreTakenAsTheyAre(t *testing.T) {
	t.Parallel()
	const list = `{"tools":[
		{"name":"odd","description":"d","inputSchema":{"type":"object","oneOf":[{"required":["b"]}],"x-own":{"z":1,"a":2},"properties":{"b":{},"a":{}}}},
		{"name":"odd","inputSchema":{}},
		{"name":""}, {"inputSchema":{}}, 5, null,
		{"name":"list","inputSchema":[]}, {"name":"text","inputSchema":"{}"},
		{"name":"unreadable","inputSchema":{"type":7,"properties":[]},"annotations":3},
		{"name":"none","description":{"a":1}}, {"name":"%s"}
	],"nextCursor":null}`
	s := remote(t, newPool(t, nil), raw(t, func(w http.ResponseWriter, _ *http.Request, r request) {
		reply(w, r, fmt.Sprintf(list, strings.Repeat("n", maxName+1)))
	}))
	tools, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err, causeOf(err))
	}
	if diff := cmp.Diff([]string{"odd", "unreadable", "none"}, names(tools)); diff != "" {
		t.Error(diff)
	}
	want := `{"type":"object","oneOf":[{"required":["b"]}],"x-own":{"z":1,"a":2},"properties":{"b":{},"a":{}}}`
	if string(tools[0].Schema) != want || tools[0].Description != "d" {
		t.Errorf("the tool is %s (%s)", tools[0].Schema, tools[0].Description)
	}
}

func TestCall_Results(t *testing.T) {
	t.Parallel()
	deep := func(n int) string {
		return `{"content":[{"a":` + strings.Repeat("[", n-3) + strings.Repeat("]", n-3) + `}]}`
	}
	for name, test := range map[string]struct{ result, want, err string }{
		"unknown content":      {`{"content":[ {"type":"hologram", "x":[1, 2]} ]}`, `[{"type":"hologram","x":[1,2]}]`, ""},
		"structured alone":     {`{"structuredContent":{"a": "<"}}`, `[{"type":"text","text":"{\"a\":\"<\"}"}]`, ""},
		"structured and empty": {`{"content":[],"structuredContent":[1]}`, `[{"type":"text","text":"[1]"}]`, ""},
		"structured and more":  {`{"content":[{"type":"text","text":"a"}],"structuredContent":{}}`, `[{"type":"text","text":"a"}]`, ""},
		"empty":                {`{"content":[]}`, `[]`, ""},
		"as deep as it may be": {deep(maxDepth), strings.TrimSuffix(strings.TrimPrefix(deep(maxDepth), `{"content":`), `}`), ""},
		"too deep":             {deep(maxDepth + 1), "", "nested more than 64 levels"},
		"no content":           {`{}`, "", "a result has no content"},
		"content is null":      {`{"content":null}`, "", "a result has no content"},
		"content is an object": {`{"content":{}}`, "", "the content of a result is no array"},
		"content of texts":     {`{"content":["a"]}`, "", "a part that is no object"},
		"wrong isError":        {`{"content":[],"isError":"no"}`, "", "isError"},
		"input required":       {`{"resultType":"input_required","inputRequests":{}}`, "", "asks for input"},
		"broken UTF-8":         {"{\"content\":[{\"text\":\"\xff\"}]}", "[{\"text\":\"\ufffd\"}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := remote(t, newPool(t, nil), raw(t, func(w http.ResponseWriter, _ *http.Request, r request) { reply(w, r, test.result) }))
			got, err := s.Call(t.Context(), "x", nil)
			if test.err != "" {
				refused(t, err, test.err)
				return
			}
			if err != nil || string(got.Content) != test.want {
				t.Errorf("got %s, %v, want %s", got.Content, err, test.want)
			}
		})
	}
}

// TestCall_RepliesThatNeverEnd uses servers that send until they are cut off.
func TestCall_RepliesThatNeverEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ mediaType, start, repeat, want string }{
		"JSON":                {"application/json", `{"jsonrpc":"2.0","id":2,"result":{"content":"`, "x", "more than 4 MiB"},
		"JSON in lines":       {"application/json", `{`, "\n", "more than 4 MiB"},
		"an event":            {"text/event-stream", "data: ", "x", "more than 4 MiB"},
		"lines of an event":   {"text/event-stream", "", "data: x\n", "more than 4 MiB"},
		"events":              {"text/event-stream", "", "data: {}\n\n", "didn't stop sending"},
		"comments":            {"text/event-stream", "", ": x\n", "didn't stop sending"},
		"notifications":       {"text/event-stream", "", `data: {"jsonrpc":"2.0","method":"notifications/progress"}` + "\n\n", "didn't stop sending"},
		"requests of its own": {"text/event-stream", "", `data: {"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n\n", "didn't stop sending"},
	} {
		t.Run(name, func(t *testing.T) {
			cutOff := make(chan struct{})
			s := remote(t, newPool(t, nil), raw(t, func(w http.ResponseWriter, _ *http.Request, r request) {
				if r.Method != "tools/call" {
					w.WriteHeader(http.StatusAccepted)
					return
				}
				defer close(cutOff)
				w.Header().Set("Content-Type", test.mediaType)
				fmt.Fprint(w, test.start)
				block := strings.Repeat(test.repeat, 1+(64<<10)/len(test.repeat))
				for {
					if _, err := io.WriteString(w, block); err != nil {
						return
					}
				}
			}))
			_, err := s.Call(t.Context(), "x", nil)
			refused(t, err, test.want)
			select {
			case <-cutOff:
			case <-time.After(30 * time.Second):
				t.Error("the server could go on sending")
			}
		})
	}
}

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
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for name, test := range map[string]struct{ url, want string }{
		"refused":     {closed.URL, "It refused the connection"},
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
	good := "/good"
	mux := http.NewServeMux()
	var here string
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var message request
		if json.NewDecoder(r.Body).Decode(&message) != nil || message.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		reply(w, message, hello)
	})
	mux.Handle(good, inner)
	mux.HandleFunc("/same", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, good, http.StatusTemporaryRedirect) })
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/loopback", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(elsewhere, "127.0.0.1", "localhost", 1), http.StatusPermanentRedirect)
	})
	mux.HandleFunc("/scheme", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(here, "http:", "https:", 1), http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/circle", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/circle", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/sse", func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", elsewhere)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	here = serve(t, mux)
	connect := func(path string) error {
		s, err := newPool(t, nil).Remote(t.Context(), "o", Remote{Label: "r", URL: here + path, Headers: map[string]string{"X-Key": "key"}})
		if err == nil {
			s.Release()
		}
		return err
	}
	for path, want := range map[string]string{
		"/other": "leads to another origin", "/loopback": "leads to another origin", "/scheme": "leads to another origin",
		"/sse": "leads to another origin", "/circle": "doesn't answer like an MCP server",
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

func TestCall_ASessionThatTheServerForgot(t *testing.T) {
	t.Parallel()
	var sessions, calls atomic.Int64
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message request
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case json.NewDecoder(r.Body).Decode(&message) != nil:
		case message.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", fmt.Sprint(sessions.Add(1)))
			reply(w, message, hello)
		case message.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case r.Header.Get("Mcp-Session-Id") == "1":
			w.WriteHeader(http.StatusNotFound)
		case message.Params.Name == "always":
			w.WriteHeader(http.StatusNotFound)
		default:
			calls.Add(1)
			reply(w, message, `{"content":[{"type":"text","text":"done"}]}`)
		}
	}))
	s := remote(t, newPool(t, nil), url)
	got, err := s.Call(t.Context(), "x", nil)
	if err != nil || calls.Load() != 1 || sessions.Load() != 2 {
		t.Fatalf("%s, %v after %d calls in %d sessions", got.Content, err, calls.Load(), sessions.Load())
	}
	_, err = s.Call(t.Context(), "always", nil)
	refused(t, err, "ended the session again and again")
}

func TestCall_Times(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{}, 10)
	url := raw(t, func(_ http.ResponseWriter, r *http.Request, _ request) {
		<-r.Context().Done()
		gone <- struct{}{}
	})
	p := newPool(t, nil)
	s := remote(t, p, url)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the client disconnected")
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	if _, err := s.Call(ctx, "x", nil); !errors.Is(err, why) {
		t.Errorf("a call that is canceled fails with %v", err)
	}
	<-gone
	p.Set(Settings{PrivateHosts: []string{"127.0.0.1"}, CallTimeout: 20 * time.Millisecond})
	_, err := s.Call(t.Context(), "x", nil)
	refused(t, err, "It didn't answer within 20ms")
	<-gone
	_, err = s.Tools(t.Context())
	refused(t, err, "It didn't answer within 20ms")
	<-gone
}
