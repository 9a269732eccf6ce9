package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/closedport"
)

// serve returns a client of a server with a handler.
func serve(t *testing.T, token string, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := OnHost(server.URL+"/", token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestReadEvents_HoweverTheBytesCome(t *testing.T) {
	t.Parallel()
	const stream = ": a comment\r\n\r\nevent: a\r\ndata: one\r\n\r\ndata:two\ndata: lines\nid: 7\n\n:\n\ndata:\n\ndata: without an end"
	want := []string{"one", "two\nlines", ""}
	for name, reader := range map[string]io.Reader{
		"at once":      strings.NewReader(stream),
		"byte by byte": iotest.OneByteReader(strings.NewReader(stream)),
		"in halves":    iotest.HalfReader(strings.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			err := readEvents(reader, func(data []byte) error {
				got = append(got, string(data))
				return nil
			})
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestReadEvents_EndsWithTheFirstError(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	n := 0
	err := readEvents(strings.NewReader("data: 1\n\ndata: 2\n\n"), func([]byte) error {
		n++
		return enough
	})
	if !errors.Is(err, enough) || n != 1 {
		t.Errorf("%d events, error %v", n, err)
	}
	cut := iotest.TimeoutReader(iotest.HalfReader(strings.NewReader(strings.Repeat("data: 1\n\n", 10000))))
	if err := readEvents(cut, func([]byte) error { return nil }); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a connection that breaks: %v", err)
	}
}

func TestClient_ErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, tt := range map[string]struct {
		token   string
		handler http.HandlerFunc
		want    []string
	}{
		"the API's":   {"", answer(404, `{"error":{"type":"model_not_found","message":"No such model."}}`), []string{"No such model."}},
		"no token":    {"", answer(401, `{"error":{"message":"A token is required."}}`), []string{"A token is required: ", "--token", "LM_API_TOKEN"}},
		"wrong token": {"sk-x", answer(401, `{"error":{"message":"Unknown token."}}`), []string{"Unknown token: ", "check --token"}},
		"another's":   {"", answer(502, "<html>\n<b>Bad\xff Gateway</b>"), []string{"http://127.0.0.1:", "isn't lmcaddy", "Bad Gateway (502)"}},
		"of TLS":      {"", answer(400, "Client sent an HTTP request to an HTTPS server.\n"), []string{"speaks TLS", "https://"}},
		"empty":       {"", answer(404, ""), []string{"isn't lmcaddy", "Not Found (404)"}},
		"long":        {"", answer(500, strings.Repeat("x", 5000)), []string{strings.Repeat("x", maxQuoted) + "…"}},
		"no JSON":     {"", answer(200, "hello"), []string{"doesn't answer like an lmcaddy server"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := serve(t, tt.token, tt.handler).Models(t.Context())
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
			if len(err.Error()) > 500 {
				t.Errorf("%d bytes of error", len(err.Error()))
			}
		})
	}
}

func TestClient_NobodyAnswers(t *testing.T) {
	t.Parallel()
	nobody, err := OnHost(closedport.Address(t), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*Client{"host": nobody, "socket": OnSocket(filepath.Join(t.TempDir(), "s"))} {
		var down *DownError
		if _, err := c.Models(t.Context()); !errors.As(err, &down) || down.Address != c.Address() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnHost_Addresses(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"127.0.0.1:1234": "http://127.0.0.1:1234", "localhost": "http://localhost", "https://a.example/lm/": "https://a.example/lm",
		"[::1]:1234": "http://[::1]:1234", "ftp://a": "", "": "", "http://": "", "http://a?b": "", "a b": "",
	} {
		c, err := OnHost(host, "")
		if want == "" {
			if err == nil {
				t.Errorf("%q is taken for %s", host, c.Address())
			}
			continue
		}
		if err != nil || c.Address() != want {
			t.Errorf("%q: %v, %v", host, c, err)
		}
	}
}

func TestClient_SendsItsToken(t *testing.T) {
	t.Parallel()
	c := serve(t, "sk-lm-x", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer sk-lm-x" {
			t.Errorf("Authorization: %q", got)
		}
		if r.Method != http.MethodDelete || r.URL.EscapedPath() != "/api/v1/models/a%2Fb@q4" {
			t.Errorf("%s %s", r.Method, r.URL.EscapedPath())
		}
		_, _ = io.WriteString(w, "{}")
	})
	if err := c.Remove(t.Context(), "a/b@q4"); err != nil {
		t.Error(err)
	}
}

// events returns a handler that sends a stream of events.
func events(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, d := range data {
			_, _ = io.WriteString(w, "event: x\ndata: "+d+"\n\n")
		}
	}
}

func TestFollow_ToTheEndOfTheJob(t *testing.T) {
	t.Parallel()
	const going = `{"type":"download.progress","job":{"job_id":"job_1","status":"downloading","downloaded_bytes":1,"total_size_bytes":4,"bytes_per_second":2.5,"estimated_completion":"2026-01-02T03:04:05.678Z"}}`
	for name, tt := range map[string]struct {
		events []string
		status string
		err    error
		calls  int
	}{
		"completed": {[]string{going, going, `{"job":{"status":"completed"}}`, going}, JobCompleted, nil, 2},
		"paused":    {[]string{`{"job":{"status":"paused"}}`}, JobPaused, nil, 0},
		"failed":    {[]string{going, `{"job":{"status":"failed","error":{"message":"The disk is full."}}}`}, JobFailed, nil, 1},
		"cut":       {[]string{going}, JobDownloading, ErrCut, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			job, err := serve(t, "", events(tt.events...)).Follow(t.Context(), "job_1", func(j Job) {
				calls++
				if j.PerSecond != 2.5 || !j.Estimate.Equal(time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)) {
					t.Errorf("%+v", j)
				}
			})
			if job.Status != tt.status || !errors.Is(err, tt.err) || calls != tt.calls {
				t.Errorf("%+v, %v, %d calls", job, err, calls)
			}
		})
	}
	if _, err := serve(t, "", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }).Follow(t.Context(), "job_1", nil); err == nil {
		t.Error("what is no stream is taken for one")
	}
}

func TestChat_EndsWithItsResultOrItsError(t *testing.T) {
	t.Parallel()
	const end = `{"type":"chat.end","result":{"response_id":"resp_1","stats":{"input_tokens":3,"total_output_tokens":5}}}`
	for name, tt := range map[string]struct {
		events   []string
		response string
		err      string
	}{
		"well":    {[]string{`{"type":"chat.start"}`, `{"type":"message.delta","content":"Hi"}`, end}, "resp_1", ""},
		"badly":   {[]string{`{"type":"error","error":{"type":"internal_error","message":"The engine died."}}`, `{"type":"chat.end","result":{}}`}, "", "The engine died."},
		"cut off": {[]string{`{"type":"chat.start"}`}, "", ErrCut.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := serve(t, "", events(tt.events...)).Chat(t.Context(), ChatRequest{}, func(ChatEvent) error { return nil })
			if result.Response != tt.response || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}

// A stranger's server can't control the terminal by its errors.
func TestError_ControlsNoTerminal(t *testing.T) {
	t.Parallel()
	err := &Error{Message: "It \x1b[2Jfails\x07.", Hint: "do so"}
	if got := err.Error(); got != "It [2Jfails: do so" {
		t.Errorf("%q", got)
	}
}
