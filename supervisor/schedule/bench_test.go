package schedule

import (
	"slices"
	"testing"
	"time"
)

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

// What it takes where requests choose among slots that hold long conversations.
func BenchmarkStep_LeaseOfTheBestSlot(b *testing.B) {
	st := &State{Limits: Limits{SaveTokens: 512, SaveAfter: time.Minute}}
	spec := with(specOf("a", 4), choosing)
	of := func(id uint64, first string) Asked {
		asked := asks(id, spec)
		asked.Waiter.Prompt = chainOf(append([]string{"s", first}, slices.Repeat([]string{"x"}, 300)...)...)
		return asked
	}
	Step(st, of(1, "0"), noon)
	Step(st, ready(1), noon)
	Step(st, Savable{1}, noon)
	for i := range 3 {
		Step(st, of(uint64(2+i), string(rune('1'+i))), noon)
	}
	for i := range 4 {
		Step(st, heard(1, uint64(1+i), i, 30_000, 0, 100), noon)
	}
	asked, returned := of(9, "2"), heard(1, 9, 2, 30_000, 29_990, 100)
	b.ReportAllocs()
	for b.Loop() {
		Step(st, asked, noon)
		Step(st, returned, noon)
		st.Deadline(noon)
	}
}
