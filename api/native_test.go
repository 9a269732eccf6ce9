package api

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
)

// native asks the native chat; more are further fields.
func (s *server) native(input, more string) answer {
	s.t.Helper()
	return s.do("POST", "/api/v1/chat", `{"model":"tinychat","input":"`+input+`"`+more+`}`)
}

// nativeEvent is an event of the native chat's stream. A comment has the name ":".
type nativeEvent struct {
	name string
	data gjson.Result
}

// nativeStream is a stream of the native chat, as it arrives.
type nativeStream struct {
	t     *testing.T
	resp  *http.Response
	lines *bufio.Scanner
}

func (s *server) nativeStream(input, more string) *nativeStream {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute) // what a test waits for may never come
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/api/v1/chat",
		strings.NewReader(`{"model":"tinychat","stream":true,"input":"`+input+`"`+more+`}`))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	st := &nativeStream{s.t, resp, bufio.NewScanner(resp.Body)}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != endpoint.TypeEvents {
		st.lines.Scan()
		s.t.Fatalf("%d, %s: %s", resp.StatusCode, kind, st.lines.Text())
	}
	return st
}

// next reads an event. There is none at the end of the stream.
func (st *nativeStream) next() (ev nativeEvent, ok bool) {
	st.t.Helper()
	for st.lines.Scan() {
		line := st.lines.Text()
		name, isName := strings.CutPrefix(line, "event: ")
		data, isData := strings.CutPrefix(line, "data: ")
		switch {
		case line == "" && ev.name != "":
			return ev, true
		case isName:
			ev.name = name
		case isData:
			ev.data = gjson.Parse(data)
		case strings.HasPrefix(line, ":") && ev.name == "":
			ev.name = ":"
		default:
			st.t.Fatalf("line %q", line)
		}
	}
	if err := st.lines.Err(); err != nil {
		st.t.Fatal(err)
	}
	return ev, false
}

// until reads to the first event of a name.
func (st *nativeStream) until(name string) nativeEvent {
	st.t.Helper()
	for {
		ev, ok := st.next()
		if !ok {
			st.t.Fatalf("the stream ended without %s", name)
		}
		if ev.name == name {
			return ev
		}
	}
}

// rest reads to the end. The order leaves out comments and progress, and tells each row of deltas once.
func (st *nativeStream) rest() (order string, fault, result gjson.Result) {
	st.t.Helper()
	var names []string
	for ev, ok := st.next(); ok; ev, ok = st.next() {
		switch {
		case ev.name == ":" || strings.HasSuffix(ev.name, ".progress"):
			continue
		case strings.HasSuffix(ev.name, ".delta") && len(names) > 0 && names[len(names)-1] == ev.name:
			continue
		case ev.name == "error":
			fault = ev.data.Get("error")
		case ev.name == "chat.end":
			result = ev.data.Get("result")
		}
		names = append(names, ev.name)
	}
	return strings.Join(names, " "), fault, result
}

// The orders of events.
const (
	nativeLoaded   = " model_load.start model_load.end"
	nativePrompt   = " prompt_processing.start prompt_processing.end"
	nativeMessage  = " message.start message.delta message.end"
	nativeThoughts = " reasoning.start reasoning.delta reasoning.end"
)

func wantOrder(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("the order is\n%s, want\n%s", got, want)
	}
}

// said is what an answer's messages say.
func said(body gjson.Result) string {
	return body.Get(`output.#(type=="message").content`).Str
}
