package api

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

// signOf is what breaks the silence of a stream of each dialect, and endOf is how the stream ends.
var signOf = map[string]string{"messages": "event: ping\ndata: {\"type\":\"ping\"}\n\n", "ollama": " "}

var endOf = map[string]string{"messages": "message_stop", "native": "chat.end", "ollama": `"done":true`}

// open asks for a stream, and reads of it until it has told of something so many times.
func (s *server) open(path, body, what string, times int) (status int, begun string, rest io.ReadCloser) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	p := make([]byte, 4096)
	for strings.Count(begun, what) < times {
		n, err := resp.Body.Read(p)
		begun += string(p[:n])
		if err != nil && strings.Count(begun, what) < times {
			s.t.Fatalf("%v, no %q in %d %s", err, what, resp.StatusCode, begun)
		}
	}
	return resp.StatusCode, begun, resp.Body
}

// silent sees that a stream has told of nothing but signs of life.
func silent(t *testing.T, begun, sign string) {
	t.Helper()
	if rest := strings.ReplaceAll(begun, sign, ""); !strings.HasPrefix(sign, rest) {
		t.Errorf("it has told of something else: %q", rest)
	}
}

func TestKeepAlive_WhileAModelIsLoaded(t *testing.T) {
	t.Parallel()
	for name, tt := range dialectAsks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load"}}, keepAliveSoon)
			sign, end := signOf[name], endOf[name]
			if sign == "" {
				sign = endpoint.Comment
			}
			if end == "" {
				end = "data: [DONE]\n"
			}
			status, begun, rest := s.open(tt.path, `{"model":"tinychat","stream":true,`+tt.body+`}`, sign, 3)
			if name != "native" { // that tells of the load
				silent(t, begun, sign)
			}
			s.fake.Release("load")
			body, err := io.ReadAll(rest)
			if status != 200 || err != nil || !strings.Contains(string(body), end) || strings.Contains(string(body), `"error"`) {
				t.Errorf("%d %v %s", status, err, body)
			}
		})
	}
}

func TestKeepAlive_InTheQueue(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Nth: 1, Gate: "first"}}}, keepAliveSoon)
	first := make(chan answer, 1)
	go func() { first <- s.chat("") }()
	s.fake.Wait(t, fakeengine.At("first"))
	var queued []io.Reader
	for name, tt := range dialectAsks {
		sign := signOf[name]
		if sign == "" {
			sign = endpoint.Comment
		}
		status, begun, rest := s.open(tt.path, `{"model":"tinychat","stream":true,`+tt.body+`}`, sign, 2)
		if silent(t, begun, sign); status != 200 {
			t.Errorf("%s: %d", name, status)
		}
		queued = append(queued, rest)
	}
	s.fake.Release("first")
	if got := <-first; got.status != 200 {
		t.Errorf("the first: %d %s", got.status, got.body)
	}
	for _, rest := range queued {
		if body, err := io.ReadAll(rest); err != nil || strings.Contains(string(body), `"error"`) {
			t.Errorf("%v %s", err, body)
		}
	}
}

// A load that fails after a sign of life is told by an event, since the status has been sent.
func TestKeepAlive_ThenTheLoadFails(t *testing.T) {
	t.Parallel()
	for name, tt := range dialectAsks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load", Fail: fakeengine.LoadError("a bad file")}}, keepAliveSoon)
			sign := signOf[name]
			if sign == "" {
				sign = endpoint.Comment
			}
			status, _, rest := s.open(tt.path, `{"model":"tinychat","stream":true,`+tt.body+`}`, sign, 1)
			s.fake.Release("load")
			body, err := io.ReadAll(rest)
			got := string(body)
			if status != 200 || err != nil || strings.Count(got, `"error":`) != 1 || !strings.Contains(got, "a bad file") || strings.Contains(got, "[DONE]") || strings.Contains(got, "message_stop") {
				t.Errorf("%d %v %s", status, err, got)
			}
			if name == "messages" && !strings.Contains(got, "event: error\ndata: {") || name == "native" && !strings.Contains(got, "event: chat.end\n") {
				t.Errorf("%s", got)
			}
		})
	}
}

// A load that fails before that is told by a status.
func TestKeepAlive_ALoadThatFailsSoonIsAStatus(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Fail: fakeengine.LoadError("a bad file")}})
	for name, tt := range dialectAsks {
		if name == "native" {
			continue // it tells of the load as soon as that has begun
		}
		got := s.do("POST", tt.path, `{"model":"tinychat","stream":true,`+tt.body+`}`)
		if got.status != 503 && got.status != 529 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}
