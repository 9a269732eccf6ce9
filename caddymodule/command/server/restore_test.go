package server

import (
	"context"
	"errors"
	"io"
	"testing"
)

// TestPatient reads from a pipe, and ends with its context while nothing comes.
func TestPatient(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	from, to := io.Pipe()
	defer func() { _ = from.Close() }()
	p := patient(ctx, func() (io.Reader, error) { return from, nil })
	go func() { _, _ = io.WriteString(to, "ab") }()
	text := make([]byte, 1)
	for _, want := range []string{"a", "b"} {
		if n, err := p.Read(text); n != 1 || err != nil || string(text) != want {
			t.Errorf("%d bytes %q, error %v", n, text, err)
		}
	}
	cancel()
	if _, err := p.Read(text); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	missing := errors.New("missing")
	p = patient(t.Context(), func() (io.Reader, error) { return nil, missing })
	if _, err := p.Read(text); !errors.Is(err, missing) {
		t.Errorf("error %v", err)
	}
}
