package api

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// socketClient is a client of a WebSocket.
type socketClient struct {
	*websocket.Conn
	t *testing.T
}

// dial opens a WebSocket.
func (s *server) dial(header http.Header) *socketClient {
	s.t.Helper()
	conn, resp, err := websocket.Dial(s.t.Context(), s.URL+"/v1/responses", &websocket.DialOptions{HTTPHeader: header, HTTPClient: s.Client()})
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("X-Request-Id") == "" {
		s.t.Errorf("%d %v", resp.StatusCode, resp.Header)
	}
	conn.SetReadLimit(-1)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return &socketClient{conn, s.t}
}

func (c *socketClient) send(message string) {
	c.t.Helper()
	if err := c.Write(c.t.Context(), websocket.MessageText, []byte(message)); err != nil {
		c.t.Fatal(err)
	}
}

// next is the next message, or the error that ends the connection.
func (c *socketClient) next() (event gjson.Result, _ error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	_, data, err := c.Read(ctx)
	if !gjson.ValidBytes(data) && err == nil {
		c.t.Fatalf("%s is no JSON", data)
	}
	return gjson.ParseBytes(data), err
}

// answer reads the events of one answer: their types, and the last of them.
func (c *socketClient) answer() (types []string, last gjson.Result) {
	c.t.Helper()
	for {
		event, err := c.next()
		if err != nil {
			c.t.Fatal(err)
		}
		kind := event.Get("type").Str
		types = append(types, kind)
		switch kind {
		case "error", "response.completed", "response.failed", "response.incomplete":
			return types, event
		}
	}
}

// ask sends a request for a response, and returns the last event of its answer.
func (c *socketClient) ask(fields string) gjson.Result {
	c.t.Helper()
	c.send(`{"type":"response.create","model":"tinychat",` + fields + `}`)
	_, last := c.answer()
	return last
}

// ended reads until the connection ends, and returns the status that the server gave.
func (c *socketClient) ended() websocket.StatusCode {
	for {
		if _, err := c.next(); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func TestResponseSocket_OneResponseAfterTheOther(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c := s.dial(nil)
	const events = "response.created response.in_progress response.output_item.added response.content_part.added response.output_text.delta"
	for range 2 {
		c.send(`{"type":"response.create","model":"tinychat","input":"hi","store":false}`)
	}
	for range 2 { // the second was sent before the first was answered
		types, last := c.answer()
		if text := last.Get("response.output.0.content.0.text").Str; text != "Hello from the fake engine." || !strings.HasPrefix(strings.Join(types, " "), events) {
			t.Errorf("%v %s", types, last)
		}
	}
	stored := c.ask(`"input":"hi"`).Get("response.id").Str
	if got := s.do("GET", "/v1/responses/"+stored, ""); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if last := c.ask(`"input":"again","previous_response_id":"` + stored + `"`); last.Get("response.previous_response_id").Str != stored {
		t.Errorf("%s", last)
	}
}

// TestResponseSocket_ContinuesWhatIsNotStored: only on the same connection, only the last response, and not after an error.
func TestResponseSocket_ContinuesWhatIsNotStored(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c := s.dial(nil)
	const unknown = "previous_response_not_found"
	unstored := func(more string) gjson.Result { return c.ask(`"store":false,` + more) }
	first := unstored(`"input":"the word is cobalt"`).Get("response.id").Str
	before := len(s.fake.Events())
	second := unstored(`"input":"which word?","previous_response_id":"` + first + `"`).Get("response.id").Str
	sent := ""
	for _, ev := range s.fake.Events()[before:] {
		sent += ev.Body
	}
	if !strings.Contains(sent, "the word is cobalt") || !strings.Contains(sent, "Hello from the fake engine.") || !strings.Contains(sent, "which word?") {
		t.Errorf("the engine was sent %s", sent)
	}
	if other := s.dial(nil).ask(`"input":"hi","previous_response_id":"` + second + `"`); other.Get("error.code").Str != unknown || other.Get("status").Int() != 400 {
		t.Errorf("another connection: %s", other)
	}
	if got := unstored(`"input":"hi","previous_response_id":"` + first + `"`); got.Get("error.code").Str != unknown {
		t.Errorf("an older response: %s", got)
	}
	stored := c.ask(`"input":"keep it","previous_response_id":"` + second + `"`).Get("response.id").Str
	if items := s.do("GET", "/v1/responses/"+stored+"/input_items", ""); gjson.Get(items.body, "data.#").Int() != 5 {
		t.Errorf("what is stored of it: %s", items.body)
	}
	third := unstored(`"input":"go on","previous_response_id":"` + stored + `"`).Get("response.id").Str
	if got := unstored(`"previous_response_id":"` + third + `","input":[{"type":"function_call_output","call_id":"c","output":"x"}]`); got.Get("status").Int() != 400 {
		t.Errorf("a result without a call: %s", got)
	}
	if got := unstored(`"input":"hi","previous_response_id":"` + third + `"`); got.Get("error.code").Str != unknown {
		t.Errorf("after an error: %s", got)
	}
}

func TestResponseSocket_ErrorsAreEvents(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) { c.MaxBody = 2000 })
	c := s.dial(nil)
	for message, want := range map[string]string{
		`{"type":"response.create","model":"nope","input":"hi"}`:                       "404 model_not_found model",
		`{"type":"response.create","input":"hi"}`:                                      "400 missing_required_parameter model",
		`{"type":"response.cancel","model":"tinychat"}`:                                "400 invalid_value type",
		`{"model":"tinychat","input":"hi"}`:                                            "400 invalid_value type",
		`{"type":"response.create","model":"tinychat","input":"hi","background":true}`: "400 unsupported_parameter background",
		`{"type":"response.create","model":"tinychat","input":[{"type":"message"}]}`:   "400 missing_required_parameter input[0].role",
		`hello`: "400 invalid_json ",
		``:      "400 invalid_json ",
	} {
		c.send(message)
		types, last := c.answer()
		if got := last.Get("status").Raw + " " + last.Get("error.code").Str + " " + last.Get("error.param").Str; got != want || len(types) != 1 {
			t.Errorf("%s: %v %s, want %s", message, types, last, want)
		}
	}
	c.send(`{"type":"response.create","model":"tinychat","input":"` + strings.Repeat("a", 1<<20) + `"}`)
	if _, last := c.answer(); last.Get("error.code").Str != "request_too_large" || c.ended() != websocket.StatusMessageTooBig {
		t.Errorf("%s", last)
	}
	if got := s.do("GET", "/v1/responses", ""); got.status != 405 || got.header.Get("Allow") != "POST" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("GET", "/v1/responses", "", "Connection", "Upgrade", "Upgrade", "websocket", "Origin", "https://evil.example"); got.status != 403 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestResponseSocket_AFailureEndsOnce: a client takes the first event that ends a response for its end.
func TestResponseSocket_AFailureEndsOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Contains: "break", Answer: fakeengine.Answer{Text: "one two three"}, Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Garbage, Bytes: []byte("data: {\"choices\":\n\n")}}}}})
	c := s.dial(nil)
	c.send(`{"type":"response.create","model":"tinychat","input":"break"}`)
	if types, last := c.answer(); last.Get("type").Str != "response.failed" || last.Get("response.error.message").Str == "" {
		t.Errorf("%v %s", types, last)
	}
	if last := c.ask(`"input":"hi"`); last.Get("type").Str != "response.completed" {
		t.Errorf("%s", last)
	}
}

// TestResponseSocket_WarmsUp: the model is loaded, and no answer is made.
func TestResponseSocket_WarmsUp(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	c := s.dial(nil)
	warm := c.ask(`"generate":false,"store":false,"instructions":"Be brief.","input":"hi"`)
	if warm.Get("response.status").Str != "completed" || warm.Get("response.output.#").Int() != 0 || len(s.node.Instances()) != 1 {
		t.Errorf("%s", warm)
	}
	if last := c.ask(`"input":[],"store":false,"previous_response_id":"` + warm.Get("response.id").Str + `"`); last.Get("response.output.#").Int() != 1 {
		t.Errorf("%s", last)
	}
}

// TestResponseSocket_Cancels: what is generated ends with the connection, also while the client says nothing.
func TestResponseSocket_Cancels(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Contains: "long", Answer: fakeengine.Answer{Text: "one two three"}, Cues: []fakeengine.Cue{{After: 2, Gate: "never"}}}}})
	c := s.dial(nil)
	c.send(`{"type":"response.create","model":"tinychat","input":"long"}`)
	for event, err := c.next(); event.Get("type").Str != "response.output_text.delta"; event, err = c.next() {
		if err != nil {
			t.Fatal(err)
		}
	}
	_ = c.CloseNow()
	testkit.Eventually(t, "the engine's request is cancelled", func() bool {
		for _, ev := range s.fake.Events() {
			if ev.Kind == fakeengine.Cancelled {
				return true
			}
		}
		return false
	})
}

// TestResponseSocket_Ends: with the server, with its configuration, and with the rights of its token, after the response that is being made.
func TestResponseSocket_Ends(t *testing.T) {
	t.Parallel()
	script := &fakeengine.Script{Rules: []fakeengine.Rule{{Contains: "wait", Answer: fakeengine.Answer{Text: "one two three"}, Cues: []fakeengine.Cue{{After: 2, Gate: "go on"}}}}}
	exiting, replaced := make(chan struct{}), make(chan struct{})
	s := serve(t, script, func(c *endpoint.Config, _ *node.Settings) { c.Exiting, c.Replaced = exiting, replaced })
	idle, busy := s.dial(nil), s.dial(nil)
	busy.send(`{"type":"response.create","model":"tinychat","input":"wait"}`)
	for event, err := busy.next(); event.Get("type").Str != "response.output_text.delta"; event, err = busy.next() {
		if err != nil {
			t.Fatal(err)
		}
	}
	close(replaced)
	if got := idle.ended(); got != websocket.StatusServiceRestart {
		t.Errorf("the configuration is replaced: %v", got)
	}
	s.fake.Release("go on")
	if _, last := busy.answer(); last.Get("type").Str != "response.completed" {
		t.Errorf("%s", last)
	}
	if got := busy.ended(); got != websocket.StatusServiceRestart {
		t.Errorf("after the response: %v", got)
	}
	close(exiting)
	if got := s.dial(nil).ended(); got != websocket.StatusGoingAway {
		t.Errorf("the server ends: %v", got)
	}
}

func TestResponseSocket_NeedsAToken(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	if got := s.do("GET", "/v1/responses", "", "Connection", "Upgrade", "Upgrade", "websocket"); got.status != 401 {
		t.Errorf("%d %s", got.status, got.body)
	}
	secret, made := s.token(access.Token{})
	c := s.dial(http.Header{"Authorization": {"Bearer " + secret}})
	c.ask(`"input":"hi"`)
	if used := s.usedBy(made.ID, "lmcaddy/tinychat", 1); used.Requests != 1 || used.TokensOut == 0 {
		t.Errorf("%+v", used)
	}
	if err := s.node.Access.Tokens.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if got := c.ended(); got != websocket.StatusPolicyViolation {
		t.Errorf("%v", got)
	}
}

// TestResponseSocket_AClientThatStopsReading holds its slot no longer than others may, and loses its connection.
func TestResponseSocket_AClientThatStopsReading(t *testing.T) {
	t.Parallel()
	s := serve(t, endless(), slowAfter(300*time.Millisecond))
	c := s.dial(nil)
	c.send(`{"type":"response.create","model":"tinychat","input":"endless","store":false}`)
	s.fake.Wait(t, fakeengine.Is(fakeengine.Serving)) // or the chat might be first, and the client would read all of it
	if got := s.chat(""); got.status != 200 {         // which waits for the only slot
		t.Errorf("%d %s", got.status, got.body)
	}
	c.ended()
}
