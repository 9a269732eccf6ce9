package remote

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Another node is told who sends the request for whom, and how long the model stays loaded; any other server isn't.
func TestPeer_IsToldTheOwner(t *testing.T) {
	t.Parallel()
	headers := make(chan http.Header, 1)
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { headers <- r.Header }))
	defer far.Close()
	for peer, want := range map[string][3]string{"a:1": {"a:1", "user%3A+ann", "1m30s"}, "": {}} {
		s, err := NewServer(Config{URL: far.URL, Kind: KindLmcaddy, Peer: peer}, "me")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		resp, err := s.Post(t.Context(), "/v1/x", supervisor.Payload{Demand: &schedule.Demand{
			Owner: "user: ann", Route: schedule.Route{TTL: new(90 * time.Second)},
		}})
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		h := <-headers
		if got := [3]string{h.Get(NodeHeader), h.Get(OwnerHeader), h.Get(TTLHeader)}; got != want {
			t.Errorf("%q gets %q, want %q", peer, got, want)
		}
	}
}

// A node that is given up answers nothing more, neither before nor after the header.
func TestPeer_RequestsAreGivenUpWithTheNode(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}, 1), make(chan struct{})
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
		}
		begun <- struct{}{}
		<-release
	}))
	defer far.Close()
	defer close(release)
	s, err := NewServer(Config{URL: far.URL, Kind: KindLmcaddy, Peer: "a:1"}, "me")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	failed := make(chan error, 1)
	go func() {
		resp, err := s.Post(t.Context(), "/early", supervisor.Payload{})
		if err == nil {
			_ = resp.Body.Close()
		}
		failed <- err
	}()
	<-begun
	s.sever()
	if err := <-failed; !errors.Is(err, errSevered) {
		t.Errorf("before the header: %v", err)
	}
	resp, err := s.Post(t.Context(), "/late", supervisor.Payload{})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-begun
	s.sever()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the answer goes on after the header")
	}
}

// A node that tells its models, and then nothing more, hasn't answered.
func TestPeer_AnswersWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	const models = `{"models":[{"type":"llm","key":"a/b","loaded_instances":[{"id":"a/b","config":{"context_length":4096}}],"max_context_length":8192,"context_length":4096},` +
		`{"type":"llm","key":"a/c","loaded_instances":[],"max_context_length":8192,"context_length":2048}]}`
	s := shapes(t, map[string]string{"/api/v1/models": models, "/api/v1/ps": `{"instances":[{"model":"a/b","slots":3,"pinned":true}]}`})
	s.config.Kind, s.config.Peer = KindLmcaddy, "a:1"
	found, err := s.Discover(t.Context())
	if err != nil || len(found.Models) != 2 || found.Models[0].Slots != 3 || !found.Models[0].Pinned || found.Models[0].Context != 4096 || found.Models[1].Context != 2048 {
		t.Errorf("%+v, %v", found, err)
	}
	s = shapes(t, map[string]string{"/api/v1/models": models})
	s.config.Kind, s.config.Peer = KindLmcaddy, "a:1"
	if _, err := s.Discover(t.Context()); err == nil {
		t.Error("half an answer is taken for a whole one")
	}
}

func TestParseTTL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": -1, "1m30s": 90 * time.Second, "0s": 0, "-1s": -1, "90": -1} {
		got := ParseTTL(http.Header{TTLHeader: {text}})
		if (got == nil) != (want < 0) || got != nil && *got != want {
			t.Errorf("a ttl of %q: %v", text, got)
		}
	}
}
