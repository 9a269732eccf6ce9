package harness

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// RespondPath is the path of OpenAI-style responses; those of one of them are below it.
const RespondPath = "/v1/responses"

// RespondAsk is a request of /v1/responses to the shipped model, whose answer is always the same. The input is a text, or items.
func RespondAsk(input any) Fields { return Fields{"model": Model, "temperature": 0, "input": input} }

// RespondLong is a request whose answer has exactly n tokens: the model can't end it.
func RespondLong(tokens int) Fields {
	return RespondAsk("Count to 30").With("logit_bias", []any{[]any{endOfTurn, false}}).With("max_output_tokens", tokens).Quick()
}

// Quick returns a request of /v1/responses whose answer has no thoughts.
func (f Fields) Quick() Fields { return f.With("reasoning", Fields{"effort": "none"}) }

// Respond requests a response in one piece, and checks its fields.
func (s *Server) Respond(request Fields) gjson.Result {
	s.T.Helper()
	return s.Post(RespondPath, request).Response(s)
}

// Stored returns a stored response.
func (s *Server) Stored(id string) gjson.Result {
	s.T.Helper()
	return s.Get(RespondPath + "/" + id).Response(s)
}

// Response reads a response object, and checks its fields. Any other reply fails the test.
func (r Reply) Response(s *Server) gjson.Result {
	s.T.Helper()
	r.Want(s.T, http.StatusOK)
	body := gjson.Parse(r.Body)
	if err := CheckResponseBody(body); err != nil {
		s.T.Fatalf("%v: %s", err, r.Body)
	}
	return body
}

// ResponseText is the text of a response's messages.
func ResponseText(response gjson.Result) string {
	return strings.Join(parts(response, "message"), "")
}

// ResponseThoughts is the text of a response's reasoning.
func ResponseThoughts(response gjson.Result) string {
	return strings.Join(parts(response, "reasoning"), "")
}

func parts(response gjson.Result, kind string) []string {
	var texts []string
	for _, item := range response.Get("output").Array() {
		if item.Get("type").Str == kind {
			texts = append(texts, item.Get("content.0.text").Str)
		}
	}
	return texts
}

// OpenResponse is a running stream of /v1/responses.
type OpenResponse struct{ *OpenStream }

// RespondStream requests a stream, and reads it to its end.
func (s *Server) RespondStream(request Fields) *ResponseStream {
	s.T.Helper()
	return s.OpenResponse(s.T.Context(), request).End()
}

// OpenResponse requests a stream, from which the client disconnects when the context ends. It returns when the header has
// arrived; any status but 200 fails the test.
func (s *Server) OpenResponse(ctx context.Context, request Fields) OpenResponse {
	s.T.Helper()
	return OpenResponse{s.open(ctx, http.MethodPost, RespondPath, s.reader(request.With("stream", true)))}
}

// FollowResponse requests the events of a background response with numbers above one; -1: all of them.
func (s *Server) FollowResponse(id string, after int) OpenResponse {
	s.T.Helper()
	path := fmt.Sprintf("%s/%s?stream=true", RespondPath, id)
	if after >= 0 {
		path += fmt.Sprintf("&starting_after=%d", after)
	}
	return OpenResponse{s.open(s.T.Context(), http.MethodGet, path, nil)}
}

// End waits for the stream's end. A violation of the published order fails the test.
func (st OpenResponse) End() *ResponseStream {
	st.t.Helper()
	s, err := CheckResponse(st.All())
	if err != nil {
		st.t.Fatalf("%v, in\n%s", err, st.Raw())
	}
	return s
}

// All waits for the stream's end, and returns everything that has arrived. A stream that is cut off fails the test.
func (st OpenResponse) All() string {
	st.t.Helper()
	Wait(st.t, "a stream has ended", st.ended)
	if st.err != nil {
		st.t.Fatalf("%v, after\n%s", st.err, st.Raw())
	}
	return st.Raw()
}

// Events are the events that have arrived whole.
func (st OpenResponse) Events() []ResponseEvent {
	events, _, _ := parseResponse(st.Raw()) // the last may be cut short
	return events
}

// WaitEvent waits for the first event of a type.
func (st OpenResponse) WaitEvent(name string) ResponseEvent {
	st.t.Helper()
	var found ResponseEvent
	Eventually(st.t, Patience, name+" has arrived", func() bool {
		events := st.Events()
		i := slices.IndexFunc(events, func(ev ResponseEvent) bool { return ev.Type == name })
		if i >= 0 {
			found = events[i]
		}
		return i >= 0
	})
	return found
}

// ID waits for the response's id.
func (st OpenResponse) ID() string {
	st.t.Helper()
	return st.WaitEvent("response.created").Data.Get("response.id").Str
}

// Finished polls a background response until it runs no longer.
func (s *Server) Finished(id string) gjson.Result {
	s.T.Helper()
	var body gjson.Result
	Eventually(s.T, Patience, "a background response has ended", func() bool {
		body = s.Stored(id)
		status := body.Get("status").Str
		return status != "queued" && status != "in_progress"
	})
	return body
}
