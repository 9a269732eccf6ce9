package api

import (
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
)

// halfway is an engine that stops at the gate "half" in the middle of an answer.
func halfway() *fakeengine.Script {
	return &fakeengine.Script{Rules: []fakeengine.Rule{{
		Answer: fakeengine.Answer{Text: "one two three four"}, Cues: []fakeengine.Cue{{After: 2, Gate: "half"}}, PromptTokens: 7,
	}}}
}

// background begins a response in the background, and returns its path.
func (s *server) background(header ...string) string {
	s.t.Helper()
	got := s.respond(`"hi"`, `,"background":true`, header...)
	response := gjson.Parse(got.body)
	if got.status != 200 || response.Get("status").Str != "queued" || !response.Get("background").Bool() || response.Get("output.#").Int() != 0 {
		s.t.Fatalf("%d %s", got.status, got.body)
	}
	return "/v1/responses/" + response.Get("id").Str
}

// end waits for the end of a response in the background, and returns the response.
func (s *server) end(path string, header ...string) gjson.Result {
	s.t.Helper()
	s.do("GET", path+"?stream=true", "", header...)
	got := s.do("GET", path, "", header...)
	if got.status != 200 {
		s.t.Fatalf("%d %s", got.status, got.body)
	}
	return gjson.Parse(got.body)
}

// status is the status of a response.
func (s *server) status(path string, header ...string) string {
	s.t.Helper()
	return gjson.Get(s.do("GET", path, "", header...).body, "status").Str
}

func outputText(response gjson.Result) string {
	return response.Get(`output.#(type=="message").content.0.text`).Str
}

func TestBackground_IsPolled(t *testing.T) {
	t.Parallel()
	script := halfway()
	script.Load.Gate = "load"
	s := serve(t, script)
	path := s.background()
	s.fake.Wait(t, fakeengine.At("load"))
	if is := s.status(path); is != "queued" {
		t.Errorf("during the load, it is %s", is)
	}
	s.fake.Release("load")
	testkit.Eventually(t, "it is in progress", func() bool { return s.status(path) == "in_progress" })
	s.fake.Wait(t, fakeengine.At("half"))
	id := strings.TrimPrefix(path, "/v1/responses/")
	if turn, err := s.node.Stores.Get().Get(t.Context(), "", id); err != nil || turn.Status != store.InProgress || len(turn.In) != 1 {
		t.Errorf("stored is %+v, %v", turn, err)
	}
	if got := s.respond(`"hi"`, `,"previous_response_id":"`+id+`"`); got.status != 400 {
		t.Errorf("it was continued: %d %s", got.status, got.body)
	}
	s.fake.Release("half")
	response := s.end(path)
	if response.Get("status").Str != "completed" || outputText(response) != "one two three four" || response.Get("usage.input_tokens").Int() != 7 ||
		!response.Get("background").Bool() || response.Get("completed_at").Int() == 0 {
		t.Errorf("%s", response)
	}
	if got := s.respond(`"hi"`, `,"previous_response_id":"`+id+`"`); got.status != 200 {
		t.Errorf("it can't be continued: %d %s", got.status, got.body)
	}
	if got := s.do("POST", path+"/cancel", ""); got.status != 200 || gjson.Get(got.body, "status").Str != "completed" {
		t.Errorf("cancelled after its end: %d %s", got.status, got.body)
	}
}

// sequence is the numbers and types of a stream's events.
func sequence(stream string) (types []string) {
	for frame := range strings.SplitSeq(stream, "\n\n") {
		_, data, _ := strings.Cut(frame, "data: ")
		if data == "[DONE]" {
			types = append(types, data)
		} else if ev := gjson.Parse(data); ev.IsObject() {
			types = append(types, ev.Get("sequence_number").Raw+" "+ev.Get("type").Str)
		}
	}
	return types
}

// isNumbered sees that a stream ends as it should, with no event missing before.
func isNumbered(t *testing.T, events []string, last string) {
	t.Helper()
	for i, ev := range events[:max(0, len(events)-1)] {
		if number, _, _ := strings.Cut(ev, " "); number != strconv.Itoa(i) {
			t.Errorf("event %d is %s", i, ev)
		}
	}
	if len(events) < 2 || !strings.HasSuffix(events[len(events)-2], " "+last) || events[len(events)-1] != "[DONE]" {
		t.Errorf("the events are %q, want %s at the end", events, last)
	}
}

// A stream that was lost is picked up after any of its events, during the run and after it.
func TestBackground_StreamIsPickedUp(t *testing.T) {
	t.Parallel()
	s := serve(t, halfway())
	status, begun, rest := s.open("/v1/responses", `{"model":"tinychat","input":"hi","background":true,"stream":true}`, "output_text.delta\n", 2)
	first := sequence(begun)
	if status != 200 || len(first) < 2 || first[0] != "0 response.created" || first[1] != "1 response.queued" {
		t.Fatalf("%d %s", status, begun)
	}
	_ = rest.Close() // the connection is lost
	path := "/v1/responses/" + gjson.Get(eventsOf(begun)[0][1], "response.id").Str
	s.fake.Wait(t, fakeengine.At("half"))
	picked := make(chan []string, 1)
	go func() { picked <- sequence(s.do("GET", path+"?stream=true&starting_after=3", "").body) }()
	s.fake.Release("half")
	whole := s.do("GET", path+"?stream=true", "")
	all := sequence(whole.body)
	isNumbered(t, all, "response.completed")
	if diff := cmp.Diff(first, all[:len(first)]); diff != "" {
		t.Errorf("the first events, read again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(all[4:], <-picked); diff != "" {
		t.Errorf("picked up during the run (-want +got):\n%s", diff)
	}
	for i := range all[:len(all)-1] {
		got := s.do("GET", path+"?stream=true&starting_after="+strconv.Itoa(i), "")
		if diff := cmp.Diff(all[i+1:], sequence(got.body)); diff != "" || got.header.Get("Content-Type") != endpoint.TypeEvents {
			t.Errorf("after %d: %v (-want +got):\n%s", i, got.header, diff)
		}
	}
}

func TestBackground_StreamsThatCantBe(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	path := s.background()
	s.end(path)
	sync := "/v1/responses/" + gjson.Get(s.respond(`"hi"`, "").body, "id").Str
	for name, tt := range map[string]struct {
		path, param string
		status      int
	}{
		"no number":        {path + "?stream=true&starting_after=x", "starting_after", 400},
		"a negative one":   {path + "?stream=true&starting_after=-1", "starting_after", 400},
		"no boolean":       {path + "?stream=x", "stream", 400},
		"of a synchronous": {sync + "?stream=true", "stream", 400},
		"unknown":          {"/v1/responses/resp_0?stream=true", "", 404},
	} {
		got := s.do("GET", tt.path, "")
		if got.status != tt.status || gjson.Get(got.body, "error.param").Str != tt.param {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.do("GET", path+"?starting_after=999", ""); got.status != 200 || got.body != "data: [DONE]\n\n" {
		t.Errorf("after all of it: %d %q", got.status, got.body)
	}
	if got := s.do("HEAD", path+"?stream=true", ""); got.status != 200 || got.body != "" {
		t.Errorf("HEAD: %d %q", got.status, got.body)
	}
	s.node.Runs.Get("", strings.TrimPrefix(path, "/v1/responses/")).Forget()
	if got := s.do("GET", path+"?stream=true", ""); got.status != 400 || got.code() != "stream_unavailable" {
		t.Errorf("after ten minutes: %d %s", got.status, got.body)
	}
	if is := s.status(path); is != "completed" {
		t.Errorf("after ten minutes, it is %s", is)
	}
}

func TestBackground_IsCancelled(t *testing.T) {
	t.Parallel()
	s := serve(t, halfway())
	path := s.background()
	s.fake.Wait(t, fakeengine.At("half"))
	for range 2 { // the second time, nothing happens
		got := s.do("POST", path+"/cancel", "")
		if got.status != 200 || gjson.Get(got.body, "status").Str != "cancelled" || gjson.Get(got.body, "error").Type != gjson.Null {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	s.fake.Wait(t, func(ev fakeengine.Event) bool { return ev.Kind == fakeengine.Cancelled })
	if is := s.status(path); is != "cancelled" {
		t.Errorf("it is %s", is)
	}
	isNumbered(t, sequence(s.do("GET", path+"?stream=true", "").body), "response.failed")
	sync := gjson.Get(s.respond(`"hi"`, `,"max_output_tokens":1`).body, "id").Str
	got := s.do("POST", "/v1/responses/"+sync+"/cancel", "")
	if got.status != 400 || gjson.Get(got.body, "error.message").Str != "Cannot cancel a synchronous response." {
		t.Errorf("a synchronous one: %d %s", got.status, got.body)
	}
	if got := s.do("POST", "/v1/responses/resp_0/cancel", ""); got.status != 404 {
		t.Errorf("an unknown one: %d %s", got.status, got.body)
	}
}

// One that another server of the store makes is cancelled in the store, where that one sees it.
func TestBackground_OfAnotherServerIsCancelled(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	path := s.background()
	s.end(path)
	turn, err := s.node.Stores.Get().Get(t.Context(), "", strings.TrimPrefix(path, "/v1/responses/"))
	if err != nil {
		t.Fatal(err)
	}
	turn.ID, turn.Status, turn.Out = "resp_other", store.InProgress, nil
	if err := s.node.Stores.Get().Put(t.Context(), turn); err != nil {
		t.Fatal(err)
	}
	if is := s.status("/v1/responses/resp_other"); is != "in_progress" {
		t.Errorf("it is %s", is)
	}
	if got := s.do("POST", "/v1/responses/resp_other/cancel", ""); got.status != 200 || gjson.Get(got.body, "status").Str != "cancelled" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A response that is deleted while it is being made ends, and nothing of it stays.
func TestBackground_IsDeleted(t *testing.T) {
	t.Parallel()
	s := serve(t, halfway())
	path := s.background()
	s.fake.Wait(t, fakeengine.At("half"))
	if got := s.do("DELETE", path, ""); got.status != 200 || !gjson.Get(got.body, "deleted").Bool() {
		t.Errorf("%d %s", got.status, got.body)
	}
	if s.node.Runs.Get("", strings.TrimPrefix(path, "/v1/responses/")) != nil {
		t.Error("its events are still there")
	}
	s.fake.Wait(t, func(ev fakeengine.Event) bool { return ev.Kind == fakeengine.Cancelled })
	if got := s.do("GET", path, ""); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	testkit.Eventually(t, "its memory is free", func() bool { return s.node.Access.Bodies.Held() == 0 })
	if n := s.stored(); n != 0 {
		t.Errorf("%d turns are stored", n)
	}
}

// A stream of a response that is deleted ends with an error that clients of the Responses API know.
func TestBackground_IsDeletedBesideAReader(t *testing.T) {
	t.Parallel()
	s := serve(t, halfway())
	_, begun, rest := s.open("/v1/responses", `{"model":"tinychat","input":"hi","background":true,"stream":true}`, "output_text.delta\n", 2)
	if got := s.do("DELETE", "/v1/responses/"+gjson.Get(eventsOf(begun)[0][1], "response.id").Str, ""); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	last, err := io.ReadAll(rest)
	if err != nil {
		t.Fatal(err)
	}
	isNumbered(t, sequence(begun+string(last)), "error")
	if event := gjson.Get(eventsOf(string(last))[0][1], "error.message").Str; !strings.Contains(event, "has been deleted") {
		t.Errorf("%s", last)
	}
}

// What the request takes of its token's limits, it takes until the response has ended, and what is used counts.
func TestBackground_CountsUntilItEnds(t *testing.T) {
	t.Parallel()
	var underway atomic.Int32
	counted := func(c *endpoint.Config, _ *node.Settings) {
		c.Underway = func() func() {
			underway.Add(1)
			return func() { underway.Add(-1) }
		}
	}
	s := guarded(serve(t, halfway()), counted)
	secret, made := s.token(access.Token{Limits: access.Limits{Concurrent: 1, TokensPerDay: 1000}})
	bearer := []string{"Authorization", "Bearer " + secret}
	path := s.background(bearer...)
	s.fake.Wait(t, fakeengine.At("half"))
	if got := s.respond(`"hi"`, "", bearer...); got.status != 429 || !strings.Contains(got.body, "concurrent") {
		t.Errorf("another request beside it: %d %s", got.status, got.body)
	}
	if s.node.Access.Bodies.Held() == 0 || underway.Load() != 1 {
		t.Errorf("%d bytes are held, %d responses are under way", s.node.Access.Bodies.Held(), underway.Load())
	}
	s.fake.Release("half")
	if response := s.end(path, bearer...); response.Get("status").Str != "completed" {
		t.Errorf("%s", response)
	}
	if used := s.usedBy(made.ID, "lmcaddy/tinychat", 1); used.TokensIn != 7 || used.TokensOut != 4 {
		t.Errorf("used: %+v", used)
	}
	testkit.Eventually(t, "all is given back", func() bool { return s.node.Access.Bodies.Held() == 0 && underway.Load() == 0 })
	if got := s.respond(`"hi"`, "", bearer...); got.status != 200 {
		t.Errorf("another request after it: %d %s", got.status, got.body)
	}
}

// A token that is revoked ends its responses, which say so to an administrator.
func TestBackground_EndsWithItsToken(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, halfway()))
	secret, made := s.token(access.Token{})
	path := s.background("Authorization", "Bearer "+secret)
	s.fake.Wait(t, fakeengine.At("half"))
	id := strings.TrimPrefix(path, "/v1/responses/")
	run := s.node.Runs.Get(made.ID, id)
	if err := s.node.Access.Tokens.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	<-run.Done()
	turn, err := s.node.Stores.Get().Get(t.Context(), made.ID, id)
	if err != nil || turn.Status != store.Failed || !strings.Contains(string(turn.Request), "has been revoked") {
		t.Errorf("%+v, %v", turn, err)
	}
}

func TestBackground_BelongsToItsOwner(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	secret, _ := s.token(access.Token{})
	other, _ := s.token(access.Token{})
	path := s.background("Authorization", "Bearer "+secret)
	for _, request := range [][2]string{
		{"GET", path}, {"GET", path + "?stream=true"}, {"POST", path + "/cancel"}, {"DELETE", path}, {"GET", path + "/input_items"},
	} {
		got := s.with(other, request[0], request[1], "")
		if want := "Response with id '" + strings.TrimPrefix(path, "/v1/responses/") + "' not found."; got.status != 404 || gjson.Get(got.body, "error.message").Str != want {
			t.Errorf("%v: %d %s", request, got.status, got.body)
		}
	}
	if response := s.end(path, "Authorization", "Bearer "+secret); response.Get("status").Str != "completed" {
		t.Errorf("%s", response)
	}
}

// However a response ends, the store and its stream say so.
func TestBackground_Fails(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]*fakeengine.Script{
		"before the answer":        {Rules: []fakeengine.Rule{{Status: 400, Body: `{"error":{"code":400,"message":"no","type":"invalid_request_error"}}`}}},
		"during the answer, twice": {Rules: []fakeengine.Rule{{Answer: fakeengine.Answer{Text: "one two three four five six"}, Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, script)
			path := s.background()
			stream := s.do("GET", path+"?stream=true", "").body
			isNumbered(t, sequence(stream), "response.failed")
			if !strings.Contains(stream, "event: error\n") {
				t.Errorf("%s", stream)
			}
			if response := s.end(path); response.Get("status").Str != "failed" || response.Get("error.message").Str == "" {
				t.Errorf("%s", response)
			}
		})
	}
}

// What can be known to be wrong is told at once.
func TestBackground_Refused(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for name, more := range map[string]string{
		"not stored":    `,"background":true,"store":false`,
		"unknown":       `,"background":true,"previous_response_id":"resp_0"`,
		"a bad setting": `,"background":true,"temperature":9`,
	} {
		if got := s.respond(`"hi"`, more); got.status != 400 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if n := s.stored(); n != 0 {
		t.Errorf("%d turns are stored", n)
	}
}

// The end of the server fails a response, with the reason.
func TestBackground_EndsWithTheServer(t *testing.T) {
	t.Parallel()
	s := serve(t, halfway())
	begun, ended := s.begin("", "/v1/responses", `{"model":"tinychat","input":"hi","background":true,"stream":true}`, "output_text.delta")
	<-begun
	s.fake.Wait(t, fakeengine.At("half"))
	if err := s.node.Close(); err != nil {
		t.Fatal(err)
	}
	got := s.wait(ended)
	events := eventsOf(got.body)
	last := gjson.Parse(events[len(events)-2][1])
	if last.Get("type").Str != "response.failed" || !strings.Contains(last.Get("response.error.message").Str, "shutting down") {
		t.Errorf("%s", got.body)
	}
}
