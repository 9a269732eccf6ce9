package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const (
	farModel         = "far"
	garbled  outcome = "502 engine_failed"
)

// endlessRemote is a server of a model whose answers have no end.
type endlessRemote struct {
	begin string                // how an answer begins
	piece func(io.Writer) error // writes a piece of one
	read  atomic.Int64          // pieces that were written
}

func (e *endlessRemote) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		_, _ = fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model"}]}`, farModel)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, e.begin)
	for req.Context().Err() == nil {
		if err := e.piece(w); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		e.read.Add(1)
	}
}

// behind starts a server whose only remote is this one.
func (e *endlessRemote) behind(r *round) *harness.Server {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	server := &http.Server{Handler: e, ReadHeaderTimeout: deadline}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	r.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			r.Error(err)
		}
	})
	home := harness.NewBareHome(r)
	home.Binary, home.Path = r.binary, os.Getenv("PATH")
	s := harness.Start(home, harness.Config{LM: []string{fmt.Sprintf("remote http://%s {\n\t\t\tname box\n\t\t\tkind openai\n\t\t}", listener.Addr())}})
	harness.Eventually(r, harness.Patience, "the remote's model is known", func() bool {
		return strings.Contains(s.Get("/v1/models").Body, farModel)
	})
	return s
}

// remoteEndlessEvent: the answers to forty requests are each one event without an end. They are errors, and neither take much memory nor
// leave some taken.
func remoteEndlessEvent(r *round) {
	const requests, mostEach, mostLeft = 40, 16, 100 // MiB
	part := bytes.Repeat([]byte("on "), 20<<10)
	e := &endlessRemote{begin: `data: {"choices":[{"index":0,"delta":{"content":"`, piece: func(w io.Writer) error {
		_, err := w.Write(part)
		return err
	}}
	s := e.behind(r)
	memory, c := r.watchMemory(s), r.crowd()
	for i := range requests {
		c.ask(s, harness.ChatPath, harness.Ask(capital).With("model", farModel).With("stream", i%2 == 0))
	}
	c.want(garbled, outcome("event "+strings.TrimPrefix(string(garbled), "502 ")))
	each := (memory.peak() - memory.before) / requests
	if r.seen.measured(each, "MiB a request"); each > mostEach {
		r.Errorf("%.1f MiB a request", each)
	}
	begun, left := time.Now(), 0.0
	for time.Since(begun) < time.Minute {
		if left = residentMemory(r, s.PID) - memory.before; left < mostLeft {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if r.seen.measured(left, "MiB left"); left >= mostLeft {
		r.Errorf("%.1f MiB aren't given back", left)
	}
}

// remoteIgnoresLimit: a remote that goes on beyond max_tokens is read little further.
func remoteIgnoresLimit(r *round) {
	const tokens, most = 5, 5 * time.Second
	e := &endlessRemote{piece: func(w io.Writer) error {
		time.Sleep(2 * time.Millisecond) // as fast as a quick model
		_, err := io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"on "},"finish_reason":null}]}`+"\n\n")
		return err
	}}
	s, c := e.behind(r), r.crowd()
	for i := range 4 {
		c.ask(s, harness.ChatPath, harness.Ask(capital).With("model", farModel).With("max_tokens", tokens).With("stream", i%2 == 0))
	}
	time.AfterFunc(15*time.Second, c.stop)
	for _, one := range c.want(answered) {
		if r.seen.measured(one.took.Seconds(), "s"); one.took > most {
			r.Errorf("%d tokens took %s", tokens, one.took)
		}
	}
	r.seen.measured(float64(e.read.Load())/4, "pieces for 5 tokens")
}
