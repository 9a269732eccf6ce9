package supervisor

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

// countedMemory counts who reads it.
type countedMemory struct{ retained, released atomic.Int32 }

func (m *countedMemory) Retain()  { m.retained.Add(1) }
func (m *countedMemory) Release() { m.released.Add(1) }

// pieces cuts a body into three.
func pieces(body string) [][]byte {
	third := len(body) / 3
	return [][]byte{[]byte(body[:third]), []byte(body[third : 2*third]), []byte(body[2*third:])}
}

func TestPayload_RetainsItsMemoryWhileItIsRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size    int
		readers int32 // that retain it, of two
	}{
		"empty":              {0, 0},
		"copied":             {copied, 0},
		"too large to copy":  {copied + 1, 2},
		"as large as images": {3 << 20, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var memory countedMemory
			body := strings.Repeat("abcdefg", tt.size/7+1)[:tt.size]
			payload := Payload{Pieces: pieces(body), Memory: &memory}
			first, second := payload.Reader(), payload.Reader()
			if n := memory.retained.Load(); n != tt.readers {
				t.Errorf("retained %d times, want %d", n, tt.readers)
			}
			for i, r := range []io.ReadCloser{first, second} {
				got, err := io.ReadAll(r)
				if err != nil || string(got) != body {
					t.Errorf("reader %d: %d bytes, error %v", i, len(got), err)
				}
				if n := memory.released.Load(); n != min(int32(i), tt.readers) {
					t.Errorf("reader %d: released %d times before it is closed", i, n)
				}
				for range 2 { // closing twice releases once
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			if n := memory.released.Load(); n != tt.readers {
				t.Errorf("released %d times, want %d", n, tt.readers)
			}
		})
	}
}

// Lease.Answered reaches the model's failures, once the lease is released.
func TestLease_AnAnswerEndsTheCountOfFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answered bool
		want     int
	}{"answered": {true, 0}, "broken off": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := start(t, nil)
			first := works(t, s)
			kill(t, first.Instance.PID)
			testkit.Eventually(t, "the crash is counted", func() bool { return len(s.Overview().Failing) == 1 })
			lease := acquire(t, s, want("m", 1))
			if tt.answered {
				lease.Answered()
			}
			if n := len(s.Overview().Failing); n != 1 {
				t.Errorf("%d models fail while the request is under way, want 1", n)
			}
			lease.Release()
			if n := len(s.Overview().Failing); n != tt.want {
				t.Errorf("afterwards %d models fail, want %d", n, tt.want)
			}
		})
	}
}

// What a lease of a ready instance costs, of an empty supervisor and of one where many wait for something else.
func BenchmarkSupervisor_Lease(b *testing.B) {
	fake := fakeengine.Install(b, nil)
	engine := LlamaServer(func() (string, error) { return fake.Path, nil })
	s := New(map[string]process.Program{"llama_server": engine}, Options{}, slog.New(slog.DiscardHandler))
	defer s.Close()
	w := want("m", 8)
	lease, err := s.Acquire(b.Context(), w, nil)
	if err != nil {
		b.Fatal(err)
	}
	lease.Release()
	b.ReportAllocs()
	for b.Loop() {
		lease, err := s.Acquire(context.Background(), w, nil)
		if err != nil {
			b.Fatal(err)
		}
		lease.Release()
	}
}
