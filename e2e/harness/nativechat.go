package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// The native API's paths.
const (
	NativeChatPath = "/api/v1/chat"
	ResponsesPath  = "/api/v1/responses/"
)

// NativeAsk is a request of the native chat to the shipped model, whose answer is always the same.
func NativeAsk(text string) Fields { return Fields{"model": Model, "temperature": 0, "input": text} }

// After returns the request with the response to continue.
func (f Fields) After(id string) Fields { return f.With("previous_response_id", id) }

// endOfTurn is the token with which the shipped model ends its turn.
const endOfTurn = 758

// NativeLong is a request whose answer has exactly n tokens: the model can't end it.
func NativeLong(tokens int) Fields {
	return NativeAsk("Count to 30").With("logit_bias", []any{[]any{endOfTurn, false}}).With("max_output_tokens", tokens)
}

// NativeChat requests an answer in one piece.
func (s *Server) NativeChat(request Fields) gjson.Result {
	s.T.Helper()
	body := gjson.Parse(s.Post(NativeChatPath, request).Want(s.T, http.StatusOK).Body)
	if err := result(body); err != nil {
		s.T.Fatalf("%v: %s", err, body.Raw)
	}
	return body
}

// NativeStream requests a stream, and reads it to its end. A violation of the specification's grammar fails the test.
func (s *Server) NativeStream(request Fields) *NativeStream {
	s.T.Helper()
	return s.OpenNative(request).End()
}

// OpenStream is a running stream, read in the background.
type OpenStream struct {
	t     testing.TB
	ended chan struct{}

	mu  sync.Mutex
	raw strings.Builder
	err error // why the stream was cut off
}

// OpenNative requests a stream. It returns when the header has arrived; any status but 200 fails the test.
func (s *Server) OpenNative(request Fields) *OpenStream {
	s.T.Helper()
	return s.OpenNativeUntil(s.T.Context(), request)
}

// OpenNativeUntil is OpenNative for a client that disconnects when the context ends.
func (s *Server) OpenNativeUntil(ctx context.Context, request Fields) *OpenStream {
	s.T.Helper()
	return s.open(ctx, http.MethodPost, NativeChatPath, s.reader(request.With("stream", true)))
}

// open requests a stream. It returns when the header has arrived; any status but 200 fails the test.
func (s *Server) open(ctx context.Context, method, path string, body io.Reader) *OpenStream {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	req, err := s.request(ctx, method, path, body)
	var resp *http.Response
	if err == nil {
		resp, err = s.client.Do(req) //nolint:bodyclose // read closes it
	}
	if err != nil {
		cancel()
		s.T.Fatal(err)
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream; charset=utf-8" {
		content, _ := io.ReadAll(resp.Body)
		cancel()
		s.T.Fatalf("status %d, type %q: %s", resp.StatusCode, kind, content)
	}
	st := &OpenStream{t: s.T, ended: make(chan struct{})}
	go st.read(resp.Body, cancel)
	return st
}

func (st *OpenStream) read(body io.ReadCloser, cancel func()) {
	defer close(st.ended)
	defer cancel()
	defer body.Close()
	buf := make([]byte, 4096)
	for {
		n, err := body.Read(buf)
		st.mu.Lock()
		st.raw.Write(buf[:n])
		if err != nil && !errors.Is(err, io.EOF) {
			st.err = err
		}
		st.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Raw is everything that has arrived.
func (st *OpenStream) Raw() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.raw.String()
}

// WaitFor waits for an event.
func (st *OpenStream) WaitFor(name string) {
	st.t.Helper()
	Eventually(st.t, Patience, name+" has arrived", func() bool { return strings.Contains(st.Raw(), "event: "+name+"\n") })
}

// WaitCut waits until nothing more is read.
func (st *OpenStream) WaitCut() {
	st.t.Helper()
	Wait(st.t, "a stream is cut off", st.ended)
}

// End waits for the stream's end. A violation of the grammar fails the test.
func (st *OpenStream) End() *NativeStream {
	st.t.Helper()
	Wait(st.t, "a stream has ended", st.ended)
	if st.err != nil {
		st.t.Fatalf("%v, after\n%s", st.err, st.Raw())
	}
	s, err := CheckNative(st.Raw())
	if err != nil {
		st.t.Fatalf("%v, in\n%s", err, st.Raw())
	}
	return s
}

// StreamForID requests a stream, and returns the id of the stored response from its end; it is empty if the stream was cut
// off. It may be called from any goroutine.
func (s *Server) StreamForID(request Fields) string {
	body, err := json.Marshal(request.With("stream", true))
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	req, err := s.request(ctx, http.MethodPost, NativeChatPath, strings.NewReader(string(body)))
	if err != nil {
		return ""
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), `data: {"type":"chat.end",`); ok {
			return gjson.Get("{"+data, "result.response_id").Str
		}
	}
	return ""
}
