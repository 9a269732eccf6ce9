package api

import (
	"io"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
)

// createdID is the id of the response whose stream has begun.
func createdID(t *testing.T, begun string) string {
	t.Helper()
	_, rest, _ := strings.Cut(begun, "data: ")
	data, _, _ := strings.Cut(rest, "\n")
	id := gjson.Get(data, "response.id").Str
	if id == "" {
		t.Fatalf("there is no id in %s", begun)
	}
	return id
}

// A response whose id a stream has told is known before its end: a request that continues it waits for that.
func TestAnnounce_TheResponseIsKnownWhileItIsMade(t *testing.T) {
	t.Parallel()
	s := serve(t, halfway(), func(_ *endpoint.Config, settings *node.Settings) { inParallel(settings, 2) })
	_, begun, rest := s.open("/v1/responses", `{"model":"tinychat","stream":true,"input":"hi"}`, `"delta"`, 2)
	id := createdID(t, begun)
	path := "/v1/responses/" + id
	got := s.do("GET", path, "")
	if got.status != 200 || gjson.Get(got.body, "status").Str != "in_progress" || gjson.Get(got.body, "background").Bool() {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("GET", path+"/input_items", ""); gjson.Get(got.body, "data.0.content.0.text").Str != "hi" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("POST", path+"/cancel", ""); got.status != 400 {
		t.Errorf("cancelled: %d %s", got.status, got.body)
	}
	next := make(chan answer)
	go func() { next <- s.respond(`"and?"`, `,"previous_response_id":"`+id+`"`) }()
	testkit.Eventually(t, "the next request waits", func() bool { return len(s.node.Record.Requests.List()) == 2 })
	s.fake.Release("half")
	if _, err := io.ReadAll(rest); err != nil {
		t.Fatal(err)
	}
	if got := <-next; got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	sent := s.sent()
	if said := gjson.Get(sent[len(sent)-1], "messages.1.content").Str; said != "one two three four" {
		t.Errorf("the engine was sent %s", sent[len(sent)-1])
	}
	if is := s.status(path); is != "completed" {
		t.Errorf("it is %s", is)
	}
}

// A response whose client disconnects is cancelled, with what was said. It can be continued.
func TestAnnounce_TheClientDisconnects(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
		Nth: 1, Answer: fakeengine.Answer{Text: "one two three four"}, Cues: []fakeengine.Cue{{After: 2, Gate: "never"}},
	}}})
	_, begun, rest := s.open("/v1/responses", `{"model":"tinychat","stream":true,"input":"hi"}`, `"delta"`, 2)
	id := createdID(t, begun)
	_ = rest.Close()
	if got := s.respond(`"and?"`, `,"previous_response_id":"`+id+`"`); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	response := gjson.Parse(s.do("GET", "/v1/responses/"+id, "").body)
	if response.Get("status").Str != "cancelled" || outputText(response) != "one two" {
		t.Errorf("%s", response)
	}
}

// Nothing is left of a request that gets an error instead of a stream.
func TestAnnounce_NothingWasTold(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Status: 500}}})
	if got := s.respond(`"hi"`, `,"stream":true`); got.status < 500 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := s.conversations(); n != 0 {
		t.Errorf("%d conversations are stored", n)
	}
}

// What the client deletes while it is made is gone at its end.
func TestAnnounce_DeletedMeanwhile(t *testing.T) {
	t.Parallel()
	s := serve(t, halfway())
	_, begun, rest := s.open("/v1/responses", `{"model":"tinychat","stream":true,"input":"hi"}`, `"delta"`, 2)
	id := createdID(t, begun)
	if got := s.do("DELETE", "/v1/responses/"+id, ""); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	s.fake.Release("half")
	left, err := io.ReadAll(rest)
	if err != nil || !strings.Contains(string(left), "response.completed") {
		t.Errorf("%v %s", err, left)
	}
	if got := s.do("GET", "/v1/responses/"+id, ""); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// An id that chat.start tells is stored before, too. Until the end it isn't found, and then it can be continued.
func TestAnnounce_Native(t *testing.T) {
	t.Parallel()
	s := serve(t, halfway(), func(_ *endpoint.Config, settings *node.Settings) { inParallel(settings, 2) })
	stream := s.nativeStream("hi", `,"store_partial":true`)
	id := stream.until("chat.start").data.Get("response_id").Str
	if turn, err := s.node.Stores.Get().Get(t.Context(), "", id); err != nil || turn.Status != store.InProgress || len(turn.In) != 1 {
		t.Errorf("stored is %+v, %v", turn, err)
	}
	if got := s.do("GET", "/api/v1/responses/"+id, ""); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	next := make(chan answer)
	go func() { next <- s.native("and?", `,"previous_response_id":"`+id+`"`) }()
	testkit.Eventually(t, "the next request waits", func() bool { return len(s.node.Record.Requests.List()) == 2 })
	s.fake.Release("half")
	stream.until("chat.end")
	if got := <-next; got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("GET", "/api/v1/responses/"+id, ""); gjson.Get(got.body, "status").Str != "completed" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
