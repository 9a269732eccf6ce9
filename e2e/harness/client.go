package harness

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// The paths that tests request.
const (
	ChatPath   = "/v1/chat/completions"
	LoadPath   = "/api/v1/models/load"
	UnloadPath = "/api/v1/models/unload"
)

// Fields are those of a JSON object.
type Fields map[string]any

// With returns a copy with one field added or changed.
func (f Fields) With(key string, value any) Fields {
	f = maps.Clone(f)
	f[key] = value
	return f
}

// Ask is a chat request to the shipped model, whose answer is always the same.
func Ask(text string) Fields {
	return Fields{"model": Model, "temperature": 0, "messages": []Fields{{"role": "user", "content": text}}}
}

// Long is a chat request whose answer has exactly n tokens, most of them nonsense: the model can't end it. The small model
// generates hundreds or thousands of tokens per second.
func Long(tokens int) Fields {
	return Ask("Count to 30").Endless().With("max_tokens", tokens)
}

// Endless returns a request with the one field of OpenAI's by which every engine can keep the shipped model from ending its turn.
func (f Fields) Endless() Fields {
	return f.With("logit_bias", Fields{strconv.Itoa(endOfTurn): -100})
}

// Reply is an answer in one piece.
type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// Get returns a part of the body, by gjson's syntax.
func (r Reply) Get(path string) gjson.Result { return gjson.Get(r.Body, path) }

// Want fails the test unless the reply has a status.
func (r Reply) Want(t testing.TB, status int) Reply {
	t.Helper()
	if r.Status != status {
		t.Fatalf("status %d, want %d: %s", r.Status, status, r.Body)
	}
	return r
}

// Get requests a path.
func (s *Server) Get(path string) Reply {
	s.T.Helper()
	return s.Do(http.MethodGet, path, nil)
}

// Post sends a JSON body; a string is sent unchanged.
func (s *Server) Post(path string, body any) Reply {
	s.T.Helper()
	return s.Do(http.MethodPost, path, s.reader(body))
}

// PostWith is Post with further headers.
func (s *Server) PostWith(header http.Header, path string, body any) Reply {
	s.T.Helper()
	server := *s
	server.header = header
	return server.Post(path, body)
}

// Do sends a request, and reads the reply.
func (s *Server) Do(method, path string, body io.Reader) Reply {
	s.T.Helper()
	reply, err := s.try(s.T.Context(), method, path, body)
	if err != nil {
		s.T.Fatalf("%s %s: %v", method, path, err)
	}
	return reply
}

// Go sends a JSON body in the background, and delivers the reply on a channel. A request that fails has the status 0 and the
// error as its body.
func (s *Server) Go(path string, body any) <-chan Reply {
	s.T.Helper()
	reader := s.reader(body)
	replied := make(chan Reply, 1)
	go func() {
		reply, err := s.try(s.T.Context(), http.MethodPost, path, reader)
		if err != nil {
			reply = Reply{Body: err.Error()}
		}
		replied <- reply
	}()
	return replied
}

// Try sends a JSON body. If the answer breaks off, the reply is what has come of it, and without any its status is 0.
func (s *Server) Try(path string, body any) (Reply, error) {
	s.T.Helper()
	return s.try(s.T.Context(), http.MethodPost, path, s.reader(body))
}

// GoUntil sends a JSON body in the background, until the test calls giveUp: then the client disconnects. An earlier answer
// is ignored.
func (s *Server) GoUntil(path string, body any) (giveUp func()) {
	s.T.Helper()
	reader := s.reader(body)
	ctx, cancel := context.WithCancel(s.T.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = s.try(ctx, http.MethodPost, path, reader)
	}()
	return func() {
		cancel()
		<-gone
	}
}

func (s *Server) try(ctx context.Context, method, path string, body io.Reader) (Reply, error) {
	return s.tryWithin(ctx, Patience, method, path, body)
}

func (s *Server) tryWithin(ctx context.Context, patience time.Duration, method, path string, body io.Reader) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := s.request(ctx, method, path, body)
	if err != nil {
		return Reply{}, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return Reply{}, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	return Reply{resp.StatusCode, resp.Header, string(content)}, err
}

func (s *Server) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.Base+path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(req.Header, s.header)
	return req, nil
}

func (s *Server) reader(body any) io.Reader {
	s.T.Helper()
	if text, ok := body.(string); ok {
		return strings.NewReader(text)
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		s.T.Fatal(err)
	}
	return strings.NewReader(string(encoded))
}

// IDs lists the ids in GET /v1/models.
func (s *Server) IDs() []string {
	s.T.Helper()
	ids := []string{}
	for _, m := range s.Get("/v1/models").Want(s.T, http.StatusOK).Get("data").Array() {
		ids = append(ids, m.Get("id").Str)
	}
	return ids
}
