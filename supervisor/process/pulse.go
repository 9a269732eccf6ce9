package process

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

// How a busy engine is monitored.
const (
	probeEvery   = 5 * time.Second // how long an engine may be silent before its activity is queried, and the interval of the queries
	probeAfter   = 2 * time.Second // the same after a client has disconnected
	probeTimeout = 3 * time.Second // of a query
	maxProbe     = 1 << 20         // bytes of the answer

	// patienceFactor is how many times longer than its longest silence, or than its work should take, an engine may make no progress.
	patienceFactor = 10
	// leastPatience is the shortest silence after which an engine counts as hung; leastPatienceLeft applies after a client has
	// disconnected, since the engine should be idle soon.
	leastPatience     = 30 * time.Second
	leastPatienceLeft = 10 * time.Second
	// tokenTime is an upper bound of the time for a token of a prompt until the engine's own pace is known. Only hardware that
	// is hardly usable is slower.
	tokenTime = 250 * time.Millisecond
	// paceTokens is the number of tokens that a measurement of the pace must span. Short measurements are dominated by overhead.
	paceTokens = 8
	// templateTokens is how many tokens a model's template may add to a prompt. The prompt itself has at most one token for each
	// byte of the body.
	templateTokens = 256
)

// reasonRefuses is why an engine is stopped that has closed its listener, as llama-server does on SIGTERM and SIGINT.
const reasonRefuses = "it no longer accepts connections"

// pulse detects processes that hang. It monitors the process as a whole, not each request: an engine evaluates the prompts of
// several requests one after the other and sends nothing to those that wait. So a byte of any answer is progress. After a
// silence, the engine's activity is queried; a change is progress, too. An engine without progress for much longer than ever
// before, or than its current work can take, is condemned.
//
// A timer runs while requests are under way. An engine that answers is never queried.
type pulse struct {
	engine  Program
	batch   int  // tokens of a prompt that are evaluated at a time
	slow    bool // the engine has work of unknown duration: images
	stall   func() time.Duration
	condemn func(reason string)
	ask     func(ctx context.Context, path string) (*http.Response, error)
	usage   func(ctx context.Context) child.Usage
	ctx     context.Context // ends with the process

	mu         sync.Mutex
	exchanges  map[*exchange]struct{} // neither answered completely nor given up
	waiting    int                    // number of exchanges that wait for bytes
	since      time.Time              // the last progress, or the begin of the wait for it
	paused     time.Time              // since when no exchange waits; zero: one does
	left       bool                   // a client has disconnected, and its request may still be under way
	leftAt     time.Time
	leftTokens int           // upper bound of the prompt tokens of the clients that disconnected since the engine was last idle
	strayed    time.Time     // when an exchange was first seen to be in none of the engine's slots
	slowest    time.Duration // the longest silence that ended
	token      time.Duration // the longest time for a token of a prompt; 0: not known
	mark       string        // the engine's activity at the last query
	marked     time.Time
	effort     effort        // of an engine that can't be asked what it is working on, or doesn't answer
	computedAt time.Time     // when such an engine was last seen to compute
	sampled    time.Time     // when waited was read
	waited     time.Duration // what the engine had waited for a processor by then
	starved    time.Duration // likewise, since the last progress
	timer      *time.Timer
	armed      bool
	due        time.Time // when the timer fires
}

// begin registers a request that is about to be sent. Its body has bodyBytes bytes.
func (u *pulse) begin(ctx context.Context, lease uint64, bodyBytes int64) *exchange {
	x := &exchange{pulse: u, lease: lease, ctx: ctx, tokens: int(bodyBytes) + templateTokens}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.exchanges == nil {
		u.exchanges = map[*exchange]struct{}{}
	}
	now := time.Now()
	if len(u.exchanges) == 0 && !u.left {
		u.since, u.paused = now, time.Time{}
	}
	u.exchanges[x] = struct{}{}
	u.waitsFor(x, now)
	return x
}

// waitsFor must be called with the lock held, as must all methods below except isAlone, check, probe, hasComputed, healthPath and get.
func (u *pulse) waitsFor(x *exchange, now time.Time) {
	if u.waiting == 0 && !u.paused.IsZero() && !u.left {
		u.since = u.since.Add(now.Sub(u.paused))
	}
	u.waiting++
	u.paused = time.Time{}
	x.waits, x.since = true, now
	u.arm(u.every())
}

func (u *pulse) waitsNoMore(x *exchange, now time.Time) {
	if !x.waits {
		return
	}
	x.waits = false
	if u.waiting--; u.waiting == 0 {
		u.paused = now
	}
}

// hasBroken reports whether an exchange of a lease has broken off, which ends the others of that lease.
func (u *pulse) hasBroken(lease uint64) bool {
	for x := range u.exchanges {
		if x.lease == lease && x.broken {
			return true
		}
	}
	return false
}

// isAlone reports whether no other lease's request can have made the process exit.
func (u *pulse) isAlone(lease uint64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for x := range u.exchanges {
		if x.lease != lease {
			return false
		}
	}
	return !u.left
}

func (u *pulse) progress(now time.Time) {
	u.slowest = max(u.slowest, now.Sub(u.since))
	u.since = now
}

// moves reports whether a piece of an answer shows progress, and learns the pace of prompt evaluation from what it reports. A comment shows
// progress only if it reports that of the prompt: an engine sends others even if its main loop hangs.
func (u *pulse) moves(x *exchange, piece []byte) bool {
	isComment, isUsed := piece[0] == ':', !x.paced && len(piece) > 1
	if !isComment && !isUsed {
		return true
	}
	var pace Pace
	pacer, ok := u.engine.(Pacer)
	if ok {
		pace, ok = pacer.Pace(piece)
	}
	switch {
	case isComment && (!ok || pace.Tokens <= x.pace.Tokens):
		return false
	case !isUsed:
		return true
	case !ok:
		x.paced = true
		return true
	}
	tokens, took := pace.Tokens-x.pace.Tokens, pace.Time-x.pace.Time
	if tokens >= paceTokens && took > 0 {
		u.token = min(max(u.token, took/time.Duration(tokens)), tokenTime)
	}
	if tokens >= paceTokens || x.pace == (Pace{}) {
		x.pace = pace
	}
	return true
}

func (u *pulse) every() time.Duration { return min(probeEvery, u.stall()/4) }

func (u *pulse) arm(in time.Duration) {
	switch {
	case u.armed:
		return
	case u.timer == nil:
		u.timer = time.AfterFunc(in, u.check)
	default:
		u.timer.Reset(in)
	}
	u.armed, u.due = true, time.Now().Add(in)
}

// discountPause leaves out of account the time for which this process itself stood still, as the engine may have. The timer then
// fires late.
func (u *pulse) discountPause(now time.Time) {
	late := now.Sub(u.due)
	if late < leastLateness {
		return
	}
	later := func(t *time.Time) {
		if *t = t.Add(late); t.After(now) {
			*t = now
		}
	}
	later(&u.since)
	for x := range u.exchanges {
		later(&x.since)
	}
	for _, t := range []*time.Time{&u.leftAt, &u.strayed, &u.computedAt} {
		if !t.IsZero() {
			later(t)
		}
	}
}

// check is called by the timer.
func (u *pulse) check() {
	u.mu.Lock()
	u.discountPause(time.Now())
	every := u.every()
	silent := time.Since(u.since)
	idle := u.waiting == 0 && !u.left
	quiet := u.left || silent >= every || u.hasStray()
	if idle || !quiet || u.ctx.Err() != nil {
		u.armed = u.ctx.Err() != nil
		if !idle {
			u.arm(every - silent)
		}
		u.mu.Unlock()
		return
	}
	u.mu.Unlock()
	used := u.usage(u.ctx)
	seen := u.probe(used)
	u.mu.Lock()
	u.armed = u.ctx.Err() != nil
	if u.starved += used.Waited - u.waited; u.since.After(u.sampled) {
		u.starved = 0
	}
	u.sampled, u.waited = time.Now(), used.Waited
	reason := u.judge(seen)
	if reason == "" && (u.waiting > 0 || u.left) {
		u.arm(every)
	}
	u.mu.Unlock()
	if reason != "" && u.ctx.Err() == nil {
		u.condemn(reason)
	}
}

// excused returns which part of a silence is due to other programs, which leave the engine no processor. On a machine that has far too much
// to do a hung engine, whose threads may wait by computing, looks like that as well.
func (u *pulse) excused() time.Duration { return min(u.starved, (maxChatter-1)*u.stall()) }

// judge returns why the engine has to be stopped; empty: it doesn't.
func (u *pulse) judge(seen activity) string {
	if seen.refused {
		return reasonRefuses
	}
	now := time.Now()
	if seen.known {
		u.effort, u.computedAt = effort{}, time.Time{} // it tells by itself how far it is
		isComparable := !u.marked.Before(u.since) && !u.marked.IsZero()
		if isComparable && seen.work.Mark != u.mark {
			u.since = now
		}
		u.mark, u.marked = seen.work.Mark, now
		gotOn := u.since.After(u.leftAt)
		if seen.work.Busy == 0 || (gotOn && seen.work.Busy <= len(u.exchanges)) {
			u.left = false
		}
		if !u.hasStray() || seen.work.Busy >= len(u.exchanges) {
			u.strayed = time.Time{}
		} else if u.strayed = cmp.Or(u.strayed, now); now.Sub(u.strayed) >= u.every() { // at first it may be on its way to the loop
			return fmt.Sprintf("a request made no progress for %s before it reached the model", u.stall())
		}
	} else if !seen.frozen && !seen.pending {
		u.left = false // this engine has no activity to query
	}
	last := u.since
	if seen.computes {
		u.computedAt = now
	}
	if u.computedAt.After(last) && now.Sub(u.since) <= maxChatter*u.stall() {
		last = u.computedAt
	}
	if silent := now.Sub(last) - u.excused(); (u.waiting > 0 || u.left) && silent >= u.patience(seen) {
		return fmt.Sprintf("it made no progress for %s", silent.Round(time.Second))
	}
	return ""
}

// hasStray reports whether an exchange has been silent for longer than the progress of others can explain.
func (u *pulse) hasStray() bool {
	stall := u.stall() + u.excused()
	for x := range u.exchanges {
		if x.waits && time.Since(x.since) > stall {
			return true
		}
	}
	u.strayed = time.Time{}
	return false
}

func (u *pulse) patience(seen activity) time.Duration {
	stall, least := u.stall(), leastPatience
	if u.left {
		least = leastPatienceLeft
	}
	if seen.frozen && !seen.computes {
		return min(least, stall)
	}
	if !seen.known && !seen.pending {
		return stall
	}
	tokens := 0
	if u.left {
		tokens = u.leftTokens
	}
	for x := range u.exchanges {
		tokens += x.tokens
	}
	tokens = min(tokens, u.batch)
	if seen.known {
		tokens = min(tokens, seen.work.Tokens)
	}
	if tokens > 0 && u.slow {
		return stall
	}
	if u.token == 0 {
		least = max(least, time.Duration(tokens)*tokenTime)
	}
	expected := max(u.slowest, time.Duration(tokens)*u.token)
	return min(max(least, patienceFactor*expected), stall)
}
