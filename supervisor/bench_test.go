package supervisor

import (
	"context"
	"log/slog"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
)

// What a lease of a ready instance costs, of an empty supervisor and of one where many wait for something else.
func BenchmarkSupervisor_Lease(b *testing.B) {
	fake := fakeengine.Install(b, nil)
	engine := LlamaServer(func() (string, error) { return fake.Path, nil })
	s := New(map[string]Process{"llama_server": engine}, Options{}, slog.New(slog.DiscardHandler))
	defer s.Close()
	w := want("m", 8)
	lease, err := s.Acquire(b.Context(), w)
	if err != nil {
		b.Fatal(err)
	}
	lease.Release()
	b.ReportAllocs()
	for b.Loop() {
		lease, err := s.Acquire(context.Background(), w)
		if err != nil {
			b.Fatal(err)
		}
		lease.Release()
	}
}

// What the scheduler itself takes of that.
func BenchmarkStep_Lease(b *testing.B) {
	st := &State{}
	Step(st, user(1, "a"), noon)
	Step(st, ready(1), noon)
	Step(st, Returned{Gen: 1, Slots: 1}, noon)
	asked := user(2, "a")
	b.ReportAllocs()
	for b.Loop() {
		Step(st, asked, noon)
		Step(st, Returned{Gen: 1, Slots: 1}, noon)
		st.Deadline(noon)
	}
}

// What it takes while a thousand wait for a model for which there is no room.
func BenchmarkStep_LeaseBeforeManyWaiters(b *testing.B) {
	st := &State{Limits: Limits{Instances: 1}}
	first := user(1, "a")
	first.Waiter.Spec = specOf("a", 2)
	Step(st, first, noon)
	Step(st, ready(1), noon) // one of two slots stays lent
	for id := range uint64(1000) {
		Step(st, user(10+id, "b"), noon)
	}
	asked := user(2, "a")
	b.ReportAllocs()
	for b.Loop() {
		for _, w := range st.Waiters {
			w.Overtaken = 0 // as if they had just come
		}
		Step(st, asked, noon)
		Step(st, Returned{Gen: 1, Slots: 1}, noon)
	}
}
