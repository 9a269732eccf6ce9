package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that accepts connections and says nothing isn't waited for without end.
func TestSilence(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	c := serve(t, "", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	})
	t.Cleanup(func() { close(ended) })
	c.silence = 50 * time.Millisecond
	for name, ask := range map[string]func() error{
		"a question": func() error { _, err := c.Models(t.Context()); return err },
		"a stream": func() error {
			return c.Stream(t.Context(), http.MethodGet, "/", nil, func([]byte) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := ask()
			if _, ok := errors.AsType[*SilentError](err); !ok || !strings.Contains(err.Error(), c.Address()) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A stream that has begun may be silent for as long as it likes.
func TestSilence_OfAStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		c := OnSocket("/nowhere")
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}
		defer transport.CloseIdleConnections()
		c.http = &http.Client{Transport: transport}
		go func() {
			defer func() { _ = theirs.Close() }()
			if _, err := http.ReadRequest(bufio.NewReader(theirs)); err != nil {
				return
			}
			_, _ = io.WriteString(theirs, "HTTP/1.1 200 OK\r\nContent-Type: "+eventStream+"\r\nConnection: close\r\n\r\n")
			time.Sleep(10 * c.silence)
			_, _ = io.WriteString(theirs, "data: x\n\n")
		}()
		n := 0
		if err := c.Stream(t.Context(), http.MethodGet, "/", nil, func([]byte) error { n++; return nil }); err != nil || n != 1 {
			t.Errorf("%d events, error %v", n, err)
		}
	})
}
