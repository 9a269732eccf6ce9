package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

func onResponse(id, more string) string { return harness.RespondPath + "/" + id + more }

// wantNoResponse checks that a response doesn't exist, for any request.
func wantNoResponse(t *testing.T, s *harness.Server, id string) {
	t.Helper()
	for _, r := range []harness.Reply{
		s.Get(onResponse(id, "")), s.Get(onResponse(id, "/input_items")), s.Post(onResponse(id, "/cancel"), harness.Fields{}),
		s.Do(http.MethodDelete, onResponse(id, ""), nil),
	} {
		if r.Status != http.StatusNotFound || r.Get("error.message").Str != "Response with id '"+id+"' not found." {
			t.Errorf("status %d: %s", r.Status, r.Body)
		}
		wantOpenAIError(t, r, "invalid_request_error", r.Get("error.code").Str)
	}
	r := s.Post(harness.RespondPath, harness.RespondAsk("Hello").After(id))
	if r.Status != http.StatusBadRequest {
		t.Errorf("to continue it has the status %d: %s", r.Status, r.Body)
	}
	wantOpenAIError(t, r, "invalid_request_error", "previous_response_not_found")
}

func TestResponses_AreStoredAndContinued(t *testing.T) {
	t.Parallel()
	overEngines(t, responsesAreStoredAndContinued)
}

func responsesAreStoredAndContinued(t *testing.T, e engine) {
	h := e.home(t)
	config := e.with(harness.Config{Port: harness.FreePort(t)})
	s := harness.Start(h, config)
	first := s.Respond(harness.RespondAsk("My name is Ada.").Quick().With("metadata", harness.Fields{"a": "b"}))
	id := first.Get("id").Str
	if diff := cmp.Diff(first.Value(), s.Stored(id).Value()); diff != "" {
		t.Errorf("the response (-) and the stored one (+):\n%s", diff)
	}
	askName := harness.RespondAsk(whoAmI).Quick()
	second := s.RespondStream(askName.After(id)).Final
	wantText := func(body gjson.Result, want string) {
		t.Helper()
		if text := harness.ResponseText(body); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	wantText(second, "Your name is Ada.")
	items := []any{harness.Fields{"role": "user", "content": "My name is Ada."}, first.Get("output.0").Value(), harness.Fields{"role": "user", "content": whoAmI}}
	resent := s.Respond(harness.RespondAsk(items).Quick())
	if a, b := second.Get("usage.input_tokens").Int(), resent.Get("usage.input_tokens").Int(); a != b {
		t.Errorf("%d input tokens by previous_response_id, %d with the same items", a, b)
	}
	if got := s.Stored(second.Get("id").Str); got.Get("previous_response_id").Str != id {
		t.Errorf("%s", got.Raw)
	}
	if diff := cmp.Diff(second.Value(), s.Stored(second.Get("id").Str).Value()); diff != "" {
		t.Errorf("streamed (-) and stored (+):\n%s", diff)
	}
	// Any response can be continued, any number of times.
	bob := s.Respond(harness.RespondAsk("My name is Bob.").Quick().After(id))
	wantText(s.Respond(askName.After(bob.Get("id").Str)), "Your name is Bob.")
	wantText(s.Respond(askName.After(second.Get("id").Str)), "Your name is Ada.")
	wantText(s.Respond(askName.After(id).With("store", false)), "Your name is Ada.")

	if status := s.Stop(syscall.SIGINT, harness.Patience); status != 0 {
		t.Errorf("status %d", status)
	}
	s = harness.Start(h, config)
	wantText(s.Respond(askName.After(id)), "Your name is Ada.")

	r := s.Do(http.MethodDelete, onResponse(id, ""), nil).Want(t, http.StatusOK)
	if diff := cmp.Diff(map[string]any{"id": id, "object": "response", "deleted": true}, r.Get("@this").Value()); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	wantNoResponse(t, s, id)
	wantText(s.Respond(askName.After(second.Get("id").Str)), "Your name is Ada.") // it keeps what it needs

	transient := s.RespondStream(askName.With("store", false)).Final.Get("id").Str
	wantNoResponse(t, s, transient)
	wantNoResponse(t, s, "resp_"+strings.Repeat("0a", 24))
}

// TestResponses_AreOfOneRequest: instructions and tools aren't inherited, and an incomplete response can be continued.
func TestResponses_InheritTheConversationOnly(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	prompt := func(body gjson.Result) int64 { return body.Get("usage.input_tokens").Int() }
	ask := harness.RespondAsk("My name is Ada.").Quick()
	plain := s.Respond(ask)
	instructed := s.Respond(ask.With("instructions", strings.Repeat("You are a helpful assistant. ", 5)).With("tools", []any{sayFunction}))
	if prompt(instructed) < prompt(plain)+40 {
		t.Errorf("%d tokens with instructions and a tool, %d without", prompt(instructed), prompt(plain))
	}
	next := harness.RespondAsk(whoAmI).Quick()
	after := map[string]gjson.Result{}
	for name, body := range map[string]gjson.Result{"plain": plain, "instructed": instructed} {
		after[name] = s.Respond(next.After(body.Get("id").Str))
		if after[name].Get("instructions").Type != gjson.Null || len(after[name].Get("tools").Array()) > 0 {
			t.Errorf("%s", after[name].Raw)
		}
	}
	if a, b := prompt(after["plain"]), prompt(after["instructed"]); a != b && harness.ResponseText(plain) == harness.ResponseText(instructed) {
		t.Errorf("%d tokens after a plain response, %d after one with instructions", a, b)
	}
	cut := s.Respond(ask.With("max_output_tokens", 1))
	if cut.Get("status").Str != "incomplete" || s.Stored(cut.Get("id").Str).Get("status").Str != "incomplete" {
		t.Errorf("%s", cut.Raw)
	}
	if continued, alone := prompt(s.Respond(next.After(cut.Get("id").Str))), prompt(s.Respond(next)); continued < alone+5 {
		t.Errorf("%d tokens after an incomplete response, %d alone", continued, alone)
	}
}

func TestResponses_InputItems(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	id := s.Respond(harness.RespondAsk("Hello").Quick()).Get("id").Str
	one := s.Get(onResponse(id, "/input_items")).Want(t, http.StatusOK)
	item := one.Get("data.0")
	want := map[string]any{"type": "message", "role": "user", "content": []any{map[string]any{"type": "input_text", "text": "Hello"}}, "id": item.Get("id").Str}
	got, _ := item.Value().(map[string]any)
	delete(got, "status")
	if diff := cmp.Diff(want, got); diff != "" || one.Get("object").Str != "list" || one.Get("has_more").Bool() || item.Get("id").Str == "" {
		t.Errorf("%s (-want +got):\n%s", one.Body, diff)
	}
	words := []string{"one", "two", "three", "four", "five"}
	input := []any{}
	for i, word := range words {
		input = append(input, harness.Fields{"role": []string{"user", "assistant"}[i%2], "content": word})
	}
	id = s.Respond(harness.RespondAsk(input).Quick()).Get("id").Str
	list := func(query string) (texts []string, page harness.Reply) {
		t.Helper()
		page = s.Get(onResponse(id, "/input_items"+query)).Want(t, http.StatusOK)
		items := page.Get("data").Array()
		for _, item := range items {
			texts = append(texts, item.Get("content.0.text").Str)
		}
		if n := len(items); n > 0 && (page.Get("first_id").Str != items[0].Get("id").Str || page.Get("last_id").Str != items[n-1].Get("id").Str) {
			t.Errorf("%s", page.Body)
		}
		return texts, page
	}
	backwards := slices.Clone(words)
	slices.Reverse(backwards)
	for query, want := range map[string][]string{"": backwards, "?order=desc": backwards, "?order=asc": words, "?order=asc&limit=2": words[:2], "?limit=100": backwards} {
		if texts, _ := list(query); !slices.Equal(texts, want) {
			t.Errorf("%q: %v, want %v", query, texts, want)
		}
	}
	var all []string
	query := "?order=asc&limit=2"
	for range 4 {
		texts, page := list(query)
		all = append(all, texts...)
		if !page.Get("has_more").Bool() {
			break
		}
		query = "?order=asc&limit=2&after=" + page.Get("last_id").Str
	}
	if !slices.Equal(all, words) {
		t.Errorf("page by page: %v", all)
	}
	for _, query := range []string{"?limit=0", "?limit=101", "?limit=x", "?order=up", "?after=msg_x"} {
		r := s.Get(onResponse(id, "/input_items"+query))
		if r.Status != http.StatusBadRequest && r.Status != http.StatusNotFound {
			t.Errorf("%s: status %d: %s", query, r.Status, r.Body)
		}
	}
}

// TestResponses_AnItemOfAnotherAnswer: references reach any stored response of the owner.
func TestResponses_ReferenceToAnItem(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	told := s.Respond(harness.RespondAsk("My name is Ada.").Quick())
	reference := harness.Fields{"type": "item_reference", "id": told.Get("output.0.id").Str}
	input := []any{harness.Fields{"role": "user", "content": "My name is Ada."}, reference, harness.Fields{"role": "user", "content": whoAmI}}
	byReference := s.Respond(harness.RespondAsk(input).Quick())
	byID := s.Respond(harness.RespondAsk(whoAmI).Quick().After(told.Get("id").Str))
	if a, b := byReference.Get("usage.input_tokens").Int(), byID.Get("usage.input_tokens").Int(); a != b {
		t.Errorf("%d input tokens with a reference, %d in the conversation", a, b)
	}
	if text := harness.ResponseText(byReference); text != "Your name is Ada." {
		t.Errorf("%q", text)
	}
	s.Do(http.MethodDelete, onResponse(told.Get("id").Str, ""), nil).Want(t, http.StatusOK)
	r := s.Post(harness.RespondPath, harness.RespondAsk(input).Quick())
	if r.Status != http.StatusNotFound || !strings.Contains(r.Body, reference["id"].(string)) {
		t.Errorf("to a deleted item: status %d: %s", r.Status, r.Body)
	}
}

// TestResponses_FamiliesDoNotMix: neither API sees the other's conversations.
func TestResponses_FamiliesDoNotMix(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	native := s.NativeChat(harness.NativeAsk("My name is Ada.").With("reasoning", "off")).Get("response_id").Str
	wantNoResponse(t, s, native)
	s.Get(harness.ResponsesPath+native).Want(t, http.StatusOK) // it wasn't deleted

	ours := s.Respond(harness.RespondAsk("My name is Bob.").Quick()).Get("id").Str
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		wantNativeError(t, s.Do(method, harness.ResponsesPath+ours, nil).Want(t, http.StatusNotFound), "invalid_request")
	}
	r := s.Post(harness.NativeChatPath, harness.NativeAsk(whoAmI).After(ours))
	if r.Status != http.StatusNotFound && r.Status != http.StatusBadRequest {
		t.Errorf("status %d: %s", r.Status, r.Body)
	}
	wantNativeError(t, r, "invalid_request")
	s.Stored(ours)
}

func TestResponses_BelongToTheirOwners(t *testing.T) {
	t.Parallel()
	site := startGated(t)
	ada, bob := site.authenticated.As(created(t, site.Home, "--name", "ada")), site.authenticated.As(created(t, site.Home, "--name", "bob"))
	id := ada.Respond(harness.RespondAsk("My name is Ada.").Quick()).Get("id").Str
	wantNoResponse(t, bob, id)
	item := ada.Stored(id).Get("output.0.id").Str
	bob.Post(harness.RespondPath, harness.RespondAsk([]any{harness.Fields{"type": "item_reference", "id": item}})).Want(t, http.StatusNotFound)
	if text := harness.ResponseText(ada.Respond(harness.RespondAsk(whoAmI).Quick().After(id))); text != "Your name is Ada." {
		t.Errorf("%q", text)
	}
	reader := site.authenticated.As(created(t, site.Home, "--name", "reader", "--scopes", "models.read"))
	for _, r := range []harness.Reply{reader.Get(onResponse(id, "")), reader.Post(harness.RespondPath, harness.RespondAsk("Hello"))} {
		wantOpenAIError(t, r.Want(t, http.StatusForbidden), "invalid_request_error", "missing_scope")
	}
	for _, r := range []harness.Reply{site.authenticated.Get(onResponse(id, "")), site.authenticated.Post(harness.RespondPath, harness.RespondAsk("Hello"))} {
		wantOpenAIError(t, r.Want(t, http.StatusUnauthorized), "invalid_request_error", "invalid_api_key")
	}
}

func TestResponses_CompactAndInputTokens(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, responsesCompactAndInputTokens)
}

func responsesCompactAndInputTokens(t *testing.T, s *harness.Server) {
	input := []any{harness.Fields{"role": "user", "content": "My name is Ada."}, harness.Fields{"role": "assistant", "content": "Hello, Ada!"}, harness.Fields{"role": "user", "content": whoAmI}}
	ask := harness.RespondAsk(input).Quick().With("instructions", "Be brief.").With("tools", []any{sayFunction})
	counted := s.Post(harness.RespondPath+"/input_tokens", ask).Want(t, http.StatusOK)
	used := s.Respond(ask).Get("usage.input_tokens").Int()
	if counted.Get("object").Str != "response.input_tokens" || counted.Get("input_tokens").Int() != used {
		t.Errorf("%s, where the response used %d", counted.Body, used)
	}
	stored := s.Respond(harness.RespondAsk("My name is Ada.").Quick())
	for name, request := range map[string]harness.Fields{
		"of items":    {"model": harness.Model, "input": input},
		"of an id":    {"model": harness.Model, "previous_response_id": stored.Get("id").Str},
		"with nulls":  {"model": harness.Model, "input": input, "instructions": nil, "previous_response_id": nil},
		"of a string": {"model": harness.Model, "input": "My name is Ada."},
	} {
		r := s.Post(harness.RespondPath+"/compact", request)
		for range 9 { // a real mlx_lm.server drops what looks like a call and is none, which the small model likes to write
			if r.Get("error.code").Str != "engine_failed" || !strings.Contains(r.Body, "without a summary") {
				break
			}
			r = s.Post(harness.RespondPath+"/compact", request)
		}
		r.Want(t, http.StatusOK)
		summary := r.Get(`output.#(type=="compaction")`)
		if r.Get("object").Str != "response.compaction" || summary.Get("encrypted_content").Str == "" || summary.Get("id").Str == "" || r.Get("created_at").Int() == 0 {
			t.Fatalf("%s: %s", name, r.Body)
		}
		if u := r.Get("usage"); u.Get("total_tokens").Int() < 2 {
			t.Errorf("%s: usage %s", name, u.Raw)
		}
		// What it returns is the next request's input.
		next := []any{}
		for _, item := range r.Get("output").Array() {
			next = append(next, item.Value())
		}
		next = append(next, harness.Fields{"role": "user", "content": capital})
		if body := s.Respond(harness.RespondAsk(next).Quick()); body.Get("usage.input_tokens").Int() < 20 {
			t.Errorf("%s: %s", name, body.Raw)
		}
	}
	for _, path := range []string{"/compact", "/input_tokens"} {
		wantOpenAIError(t, s.Post(harness.RespondPath+path, harness.Fields{"input": "Hello"}).Want(t, http.StatusBadRequest), "invalid_request_error", "missing_required_parameter")
	}
}

func TestResponses_SynchronousOnesCannotBeCancelled(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	id := s.Respond(harness.RespondAsk("Hello").Quick()).Get("id").Str
	r := s.Post(onResponse(id, "/cancel"), harness.Fields{}).Want(t, http.StatusBadRequest)
	if r.Get("error.message").Str != "Cannot cancel a synchronous response." {
		t.Errorf("%s", r.Body)
	}
	for method, path := range map[string]string{http.MethodPut: onResponse(id, ""), http.MethodGet: harness.RespondPath, http.MethodPost: onResponse(id, "/input_items")} {
		if r := s.Do(method, path, strings.NewReader("{}")); r.Status != http.StatusMethodNotAllowed || r.Header.Get("Allow") == "" {
			t.Errorf("%s", fmt.Sprint(method, path, r.Status, r.Body))
		}
	}
}

// TestResponses_EngineThatDies: a stream that has begun, and loses two engines, ends in a failure.
func TestResponses_EngineThatDies(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, responsesEngineThatDies)
}

func responsesEngineThatDies(t *testing.T, s *harness.Server) {
	st := s.OpenResponse(t.Context(), harness.RespondLong(8000))
	st.WaitEvent("response.output_text.delta")
	crashTwice(t, s)
	end := st.End()
	if diff := cmp.Diff("created in_progress"+messageItem+" error failed", end.Order()); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	if end.Fault.Get("code").Str != "request_crashes_engine" || end.Final.Get("error.message").Str != end.Fault.Get("message").Str {
		t.Errorf("%s, %s", end.Fault.Raw, end.Final.Get("error").Raw)
	}
	id := end.Final.Get("id").Str
	if got := s.Stored(id); got.Get("status").Str != "failed" || got.Get("error.message").Str != end.Fault.Get("message").Str {
		t.Errorf("it is stored as %s", got.Raw)
	}
}
