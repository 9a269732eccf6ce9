package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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

func TestHostile_ListsOfTools(t *testing.T) {
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
			return fmt.Sprintf(`{"padding":"%s","tools":[],"nextCursor":"%d"}`, strings.Repeat("x", maxMessage-1000), n.Add(1))
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

// TestHostile_RepliesThatNeverEnd uses servers that send until they are cut off.
func TestHostile_RepliesThatNeverEnd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ mediaType, start, repeat, want string }{
		"JSON":                {"application/json", `{"jsonrpc":"2.0","id":2,"result":{"content":"`, "x", "more than 4 MiB"},
		"JSON in lines":       {"application/json", `{`, "\n", "more than 4 MiB"},
		"an event":            {"text/event-stream", "data: ", "x", "more than 4 MiB"},
		"lines of an event":   {"text/event-stream", "", "data: x\n", "didn't stop sending"},
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
			nearlySpent(s)
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
	arrived, gone := make(chan struct{}, 100), make(chan struct{}, 100)
	url := raw(t, func(_ http.ResponseWriter, r *http.Request, _ request) {
		arrived <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	p := newPool(t, nil)
	s := remote(t, p, url)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the client disconnected")
	go func() {
		<-arrived
		cancel(why)
	}()
	if _, err := s.Call(ctx, "x", nil); !errors.Is(err, why) {
		t.Errorf("a call that is canceled fails with %v", err)
	}
	<-gone
	for _, ask := range []func() error{
		func() error { _, err := s.Call(t.Context(), "x", nil); return err },
		func() error { _, err := s.Tools(t.Context()); return err },
	} {
		// The time may be over before the request has arrived: then there is more the next time.
		for most := 20 * time.Millisecond; len(arrived) == 0; most *= 2 {
			p.Set(Settings{PrivateHosts: []string{"127.0.0.1"}, CallTimeout: most})
			refused(t, ask(), "It didn't answer within ") // a list has a limit of its own, which may be over first
		}
		for range len(arrived) {
			<-arrived
			<-gone
		}
	}
}
