package harness

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// Stream is an answer that arrives in pieces. It is read in the background.
type Stream struct {
	t      testing.TB
	cancel context.CancelFunc
	ended  chan struct{} // closed at the end

	mu     sync.Mutex
	chunks []gjson.Result // except the last, [DONE]
	done   bool           // [DONE] has arrived
	reads  int            // the number of reads that returned data
	err    error          // why the stream was cut off
}

// Stream requests a streamed answer. It returns when the header has arrived; any status but 200 fails the test.
func (s *Server) Stream(request Fields) *Stream {
	s.T.Helper()
	ctx, cancel := context.WithCancel(s.T.Context())
	late := time.AfterFunc(Patience, cancel)
	req, err := s.request(ctx, http.MethodPost, ChatPath, s.reader(request.With("stream", true)))
	if err != nil {
		cancel()
		s.T.Fatal(err)
	}
	req.Close = true              // no later request uses a connection that a reload may have closed
	resp, err := s.client.Do(req) //nolint:bodyclose // read closes it
	late.Stop()
	if err != nil {
		cancel()
		s.T.Fatal(err)
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream; charset=utf-8" {
		content, _ := io.ReadAll(resp.Body)
		cancel()
		s.T.Fatalf("status %d, type %q: %s", resp.StatusCode, kind, content)
	}
	st := &Stream{t: s.T, cancel: cancel, ended: make(chan struct{})}
	go st.read(resp.Body)
	s.T.Cleanup(st.Cancel)
	return st
}

func (st *Stream) read(body io.ReadCloser) {
	defer close(st.ended)
	defer body.Close()
	lines := bufio.NewReader(countReads{body, st})
	for {
		line, err := lines.ReadString('\n')
		st.mu.Lock()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				st.err = err
			}
			st.mu.Unlock()
			return
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			st.take(strings.TrimSpace(data))
		}
		st.mu.Unlock()
	}
}

func (st *Stream) take(data string) {
	if data == "[DONE]" {
		st.done = true
		return
	}
	st.chunks = append(st.chunks, gjson.Parse(data))
}

// countReads counts the reads that return data.
type countReads struct {
	from io.Reader
	st   *Stream
}

func (c countReads) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if n > 0 {
		c.st.mu.Lock()
		c.st.reads++
		c.st.mu.Unlock()
	}
	return n, err
}

// WaitContent waits for the first piece of the answer's text.
func (st *Stream) WaitContent() {
	st.t.Helper()
	Eventually(st.t, Patience, "a stream's first content has arrived", func() bool {
		for _, chunk := range st.Chunks() {
			if chunk.Get("choices.0.delta.content").Str != "" {
				return true
			}
		}
		if st.HasEnded() {
			st.t.Fatalf("the stream ended without content: %v, %v", st.Chunks(), st.err)
		}
		return false
	})
}

// Chunks returns the chunks that have arrived.
func (st *Stream) Chunks() []gjson.Result {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Clip(st.chunks)
}

// Reads is the number of reads that have returned data.
func (st *Stream) Reads() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.reads
}

// HasEnded reports whether the stream has ended.
func (st *Stream) HasEnded() bool {
	select {
	case <-st.ended:
		return true
	default:
		return false
	}
}

// IsWhole reports whether [DONE] has arrived.
func (st *Stream) IsWhole() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.done
}

// WaitEnd waits until the stream has ended, with or without [DONE].
func (st *Stream) WaitEnd() {
	st.t.Helper()
	Wait(st.t, "a stream has ended", st.ended)
}

// Answer waits for the stream's end, and returns the answer. A stream that is cut off fails the test.
func (st *Stream) Answer() Answer {
	st.t.Helper()
	st.WaitEnd()
	if !st.done {
		chunks := st.Chunks()
		st.t.Fatalf("the stream ended without [DONE], after %d chunks, with %v: %v", len(chunks), chunks[max(0, len(chunks)-2):], st.err)
	}
	var a Answer
	for _, chunk := range st.Chunks() {
		a.Model = chunk.Get("model").Str
		a.add(chunk.Get("choices.0"), "delta")
		if usage := chunk.Get("usage"); usage.IsObject() {
			a.Usage = usageOf(usage)
		}
	}
	return a
}

// Cancel disconnects the client.
func (st *Stream) Cancel() { st.cancel() }
