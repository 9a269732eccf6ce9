package faults

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// fault is a kind of failure.
type fault struct {
	name        string
	short, full int // rounds; short is 0 if the result depends on how busy the machine is
	run         func(*round)
}

// column is the result of a fault's rounds with one binary.
type column struct {
	seen   tally
	broken int // rounds with a failed check
}

// measure runs rounds of a fault. Failed checks fail the test if they should.
func (f fault) measure(t *testing.T, binary string, rounds int, mayFail bool) *column {
	t.Helper()
	c := &column{}
	name := fnv.New64()
	_, _ = name.Write([]byte(f.name))
	for i := range rounds {
		r := newRound(t, binary, *seed+name.Sum64()+uint64(i))
		r.seen = &c.seen
		r.do(f.run)
		if len(r.broken) == 0 {
			continue
		}
		c.broken++
		text := fmt.Sprintf("round %d: %s\n%s", i, strings.Join(r.broken, "\n"), strings.Join(r.logs, "\n"))
		if mayFail {
			t.Error(text)
		} else {
			t.Log("before: " + strings.Join(r.broken, "\n"))
		}
	}
	return c
}

// round is one run of a fault. The harness uses it as the test, so it collects failures, and stops everything that was
// started in it when it ends.
type round struct {
	testing.TB

	*rand.Rand
	binary string
	seen   *tally

	ctx    context.Context //nolint:containedctx // testing.TB has one
	cancel context.CancelFunc

	mu       sync.Mutex
	broken   []string
	logs     []string
	cleanups []func()
}

func newRound(t testing.TB, binary string, seed uint64) *round {
	r := &round{TB: t, binary: binary, seen: &tally{}, Rand: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // no secret
	r.ctx, r.cancel = context.WithCancel(t.Context())
	return r
}

// do runs the round and its cleanups.
func (r *round) do(run func(*round)) {
	inOrder(func() { run(r) })
	r.cancel()
	for {
		r.mu.Lock()
		last := len(r.cleanups) - 1
		if last < 0 {
			r.mu.Unlock()
			return
		}
		clean := r.cleanups[last]
		r.cleanups = r.cleanups[:last]
		r.mu.Unlock()
		inOrder(clean)
	}
}

// inOrder runs a function that may end its goroutine, as Fatal does.
func inOrder(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
}

func (r *round) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = append(r.broken, fmt.Sprintf(format, args...))
}

func (r *round) Error(args ...any) { r.Errorf("%s", strings.TrimSuffix(fmt.Sprintln(args...), "\n")) }
func (r *round) Fail()             { r.Errorf("it failed") }

func (r *round) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *round) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *round) FailNow() { r.Fatalf("it failed") }

func (r *round) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.broken) > 0
}

func (r *round) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func (r *round) Log(args ...any) { r.Logf("%s", fmt.Sprintln(args...)) }

func (r *round) Cleanup(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, do)
}

func (r *round) Context() context.Context { return r.ctx }
func (r *round) Helper()                  {}

// home makes a home for the binary of this column.
func (r *round) home() *harness.Home {
	h := harness.NewHome(r)
	h.Binary = r.binary
	return h
}

// start starts a server in a new home.
func (r *round) start(c harness.Config) *harness.Server { return harness.Start(r.home(), c) }

// upTo returns a random number from 1 to n.
func (r *round) upTo(n int) int { return 1 + r.IntN(n) }
