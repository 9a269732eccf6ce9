package store

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkPut stores turns from one goroutine and from 64. ns/op is the time between two stored turns, ms/Put the latency of
// one.
func BenchmarkPut(b *testing.B) {
	for _, kind := range backends {
		for _, parallel := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/parallel=%d", kind.name, parallel), func(b *testing.B) {
				s := open(b, kind.at(b))
				b.ReportAllocs()
				var waited atomic.Int64
				putParallel(b, parallel, func() {
					began := time.Now()
					must(b, s.Put(b.Context(), turn(nil, "What does it cost to keep this?")))
					waited.Add(int64(time.Since(began)))
				})
				b.ReportMetric(float64(waited.Load())/float64(b.N)/1e6, "ms/Put")
			})
		}
	}
}

// BenchmarkAnnounce stores turns as BenchmarkPut does, at once or with their beginnings before. The beginnings cost no flush to disk.
func BenchmarkAnnounce(b *testing.B) {
	for _, kind := range backends {
		for _, announced := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/announced=%t", kind.name, announced), func(b *testing.B) {
				s := open(b, kind.at(b))
				b.ReportAllocs()
				for b.Loop() {
					t := turn(nil, "What does it cost to keep this?")
					if !announced {
						must(b, s.Put(b.Context(), t))
						continue
					}
					begun := *t
					begun.Status, begun.Out = InProgress, nil
					must(b, s.Announce(b.Context(), &begun))
					must(b, s.Finish(b.Context(), t))
				}
			})
		}
	}
}

func putParallel(b *testing.B, parallel int, put func()) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	b.ResetTimer()
	for range parallel {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				put()
			}
		})
	}
	all.Wait()
}

var turns = flag.Int("turns", 10_000, "how many turns are stored in the larger store of BenchmarkContinue")

// BenchmarkContinue measures the cost of continuing a conversation of ten turns in a large store as a ratio to a small one, by
// medians of alternating measurements.
func BenchmarkContinue(b *testing.B) {
	for _, kind := range backends {
		b.Run(kind.name, func(b *testing.B) {
			small, large := open(b, kind.at(b)), open(b, kind.at(b))
			crowd(b, small, 1000)
			began := time.Now()
			crowd(b, large, *turns)
			b.Logf("%d turns were stored in %s", *turns, time.Since(began).Round(time.Second))
			runtime.GC()
			var costs [2][]time.Duration
			b.ResetTimer()
			for n := range b.N {
				for i, s := range []*Store{small, large} {
					among := []int{1000, *turns}[i] / 10
					// Use another conversation each time, old and new ones.
					last := crowdID(n*7919%among*10 + 9)
					began := time.Now()
					chain, err := s.Chain(b.Context(), "", last)
					if err != nil || len(chain) != 10 {
						b.Fatalf("%d turns, %v", len(chain), err)
					}
					must(b, s.Put(b.Context(), turn(chain[9], "and now?")))
					costs[i] = append(costs[i], time.Since(began))
				}
			}
			b.StopTimer()
			medians := [2]time.Duration{median(costs[0]), median(costs[1])}
			b.ReportMetric(float64(medians[0])/1e6, "ms/small")
			b.ReportMetric(float64(medians[1])/1e6, "ms/large")
			b.ReportMetric(float64(medians[1])/float64(medians[0]), "ratio")
		})
	}
}

// BenchmarkPrune removes 1000 turns by age from a large store.
func BenchmarkPrune(b *testing.B) {
	for _, kind := range backends {
		b.Run(kind.name, func(b *testing.B) {
			s := open(b, kind.at(b))
			crowd(b, s, *turns)
			stored := rows(b, s, "turns")
			b.ResetTimer()
			for n := range b.N {
				if stored <= 1000 {
					b.Skipf("the store is empty after %d: -turns makes it larger", n)
				}
				if removed, err := s.Prune(b.Context(), Bounds{Number: stored - 1000}); err != nil || removed != 1000 {
					b.Fatalf("%d removed, %v", removed, err)
				}
				stored -= 1000
			}
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkConversations measures the cost of a page of the list of conversations: the first, and one in the middle. Run it with
// -turns 1000000 for 100,000 conversations.
func BenchmarkConversations(b *testing.B) {
	for _, kind := range backends {
		b.Run(kind.name, func(b *testing.B) {
			s := open(b, kind.at(b))
			crowd(b, s, *turns)
			must(b, s.write(b.Context(), 0, func(t *tx) error {
				_, err := t.exec(`UPDATE families SET dialect = 'native', title = 'What does this cost?'`)
				return err
			}))
			for name, after := range map[string]Position{"first": {}, "middle": {time.Unix(0, int64(*turns/2)), "resp_"}} {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						page, err := s.Search(b.Context(), "", Filter{}, after, 20)
						if must(b, err); len(page) != 20 || page[0].Turns != 10 {
							b.Fatalf("%d, %+v", len(page), page[0])
						}
					}
				})
			}
			b.Run("one", func(b *testing.B) {
				for b.Loop() {
					_, err := s.Conversation(b.Context(), "", crowdID(*turns / 2)[:15])
					must(b, err)
				}
			})
		})
	}
}
