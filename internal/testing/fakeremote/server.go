// Package fakeremote is a server of models for tests. It speaks as vLLM or SGLang do, and misbehaves as a prompt tells it to.
package fakeremote

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a fake of a kind of server.
type Server struct {
	*httptest.Server

	Kind   string // vllm or sglang
	Text   string // of its answers
	models []string

	mu        sync.Mutex
	requests  []Request
	isDown    bool
	refusal   *Refusal
	key       string
	cancelled chan struct{} // receives when a client has disconnected from an answer without an end
}

// Request is a request that the server has got.
type Request struct {
	Path   string
	Header http.Header
	Body   string
}

// Refusal is how the server answers requests for text for a time.
type Refusal struct {
	Status     int // 0: the connection breaks
	RetryAfter string
	Body       string
	Path       string // the only requests that are refused; empty: all
	Times      int    // after that, it answers again
}

// Start starts a server of a kind with some models, until the test has ended. With http2, it has TLS and speaks HTTP/2.
func Start(t *testing.T, kind string, http2 bool, models ...string) *Server {
	t.Helper()
	s := &Server{Kind: kind, Text: "Hello from afar.", models: models, cancelled: make(chan struct{}, 16)}
	s.Server = httptest.NewUnstartedServer(s)
	if http2 {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// SetDown makes the server close every connection, as one does that has ended.
func (s *Server) SetDown(down bool) {
	s.mu.Lock()
	s.isDown = down
	s.mu.Unlock()
	if down {
		s.CloseClientConnections()
	}
}

// Refuse makes the server refuse requests for text.
func (s *Server) Refuse(r Refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = &r
}

// SetKey makes the server require a key.
func (s *Server) SetKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// SetModels changes the models.
func (s *Server) SetModels(models ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = models
}

// Asked returns the requests for text that the server has got.
func (s *Server) Asked() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.requests...)
}

// Cancelled waits until a client has disconnected from an answer without an end.
func (s *Server) Cancelled(t *testing.T) {
	t.Helper()
	select {
	case <-s.cancelled:
	case <-time.After(time.Minute):
		t.Fatal("the server wasn't told that its answer isn't wanted any more")
	}
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	isDown, key, models := s.isDown, s.key, s.models
	s.mu.Unlock()
	switch {
	case isDown:
		panic(http.ErrAbortHandler)
	case key != "" && r.Header.Get("Authorization") != "Bearer "+key:
		refuse(w, http.StatusUnauthorized, `{"error":"Unauthorized"}`)
	case r.Method == http.MethodGet:
		s.get(w, r.URL.Path, models)
	default:
		s.post(w, r, string(body))
	}
}

func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func (s *Server) get(w http.ResponseWriter, path string, models []string) {
	switch path {
	case "/health":
	case "/version":
		refuse(w, http.StatusOK, `{"version":"0.25.2"}`)
	case "/v1/models":
		var data []map[string]any
		for _, m := range models {
			data = append(data, map[string]any{"id": m, "object": "model", "created": 1700000000, "owned_by": s.Kind, "root": m, "parent": nil, "max_model_len": 4096})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
	default:
		refuse(w, http.StatusNotFound, `{"detail":"Not Found"}`)
	}
}

// The prompts that make the server misbehave.
const (
	Silent   = "be silent"          // nothing after the header
	Reset    = "reset"              // the connection breaks before the header
	BreakOff = "break off"          // it breaks amid the answer
	TooLong  = "too long"           // 400
	Fail     = "fail"               // 500
	LateFail = "fail in the stream" // an error amid the answer
	Call     = "call"               // of the first tool
	Endless  = "go on and on"       // until the client disconnects, whatever the limit of tokens
)

func (s *Server) post(w http.ResponseWriter, r *http.Request, body string) {
	s.mu.Lock()
	s.requests = append(s.requests, Request{r.URL.Path, r.Header.Clone(), body})
	refusal := s.refusal
	if refusal != nil && refusal.Path != "" && refusal.Path != r.URL.Path {
		refusal = nil
	}
	if refusal != nil {
		if refusal.Times--; refusal.Times <= 0 {
			s.refusal = nil
		}
	}
	s.mu.Unlock()
	has := func(word string) bool { return strings.Contains(body, `"`+word+`"`) }
	switch {
	case refusal != nil && refusal.Status == 0:
		panic(http.ErrAbortHandler)
	case refusal != nil:
		if refusal.RetryAfter != "" {
			w.Header().Set("Retry-After", refusal.RetryAfter)
		}
		refuse(w, refusal.Status, refusal.Body)
	case has(Reset):
		panic(http.ErrAbortHandler)
	case has(TooLong):
		refuse(w, http.StatusBadRequest, `{"error":{"message":"This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":null,"code":400}}`)
	case has(Fail):
		refuse(w, http.StatusInternalServerError, `{"error":{"message":"EngineCore encountered an issue","type":"InternalServerError","param":null,"code":500}}`)
	case r.URL.Path == "/v1/embeddings":
		refuse(w, http.StatusOK, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-0.5]}],"model":"m","usage":{"prompt_tokens":2,"total_tokens":2}}`)
	case r.URL.Path == "/tokenize":
		refuse(w, http.StatusOK, `{"count":7,"max_model_len":4096,"tokens":[1,2,3,4,5,6,7]}`)
	case has(Silent):
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		s.cancelled <- struct{}{}
	default:
		s.stream(w, r, has)
	}
}

// stream answers in the shape of vLLM or SGLang: no timings, no progress, thinking under the name that each has for it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, has func(string) bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	thinking := "reasoning"
	if s.Kind == "sglang" {
		thinking = "reasoning_content"
	}
	say := func(delta string) {
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"logprobs\":null,\"finish_reason\":null}]}\n\n", delta)
		_ = http.NewResponseController(w).Flush()
	}
	say(`{"role":"assistant","content":""}`)
	reason := "stop"
	for has(Endless) {
		if r.Context().Err() != nil {
			s.cancelled <- struct{}{}
			return
		}
		say(`{"content":"on "}`)
	}
	if has(Call) {
		say(`{"tool_calls":[{"index":0,"id":"chatcmpl-tool-1","type":"function","function":{"name":"get_weather","arguments":""}}]}`)
		say(`{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":\"Paris\"}"}}]}`)
		reason = "tool_calls"
	} else {
		say(`{"` + thinking + `":"hm"}`)
		for word := range strings.SplitAfterSeq(s.Text, " ") {
			text, _ := json.Marshal(word)
			say(`{"content":` + string(text) + `}`)
			switch {
			case has(BreakOff):
				panic(http.ErrAbortHandler)
			case has(LateFail):
				_, _ = io.WriteString(w, "data: {\"error\":{\"message\":\"CUDA error\",\"type\":\"InternalServerError\",\"code\":500}}\n\ndata: [DONE]\n\n")
				return
			}
		}
	}
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":%q,\"stop_reason\":null}]}\n\n", reason)
	_, _ = io.WriteString(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"total_tokens\":13,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n")
}
