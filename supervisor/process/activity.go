package process

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

const (
	// sampleEvery is the interval between samples of a process.
	sampleEvery = 5 * time.Second
	// leastGrowth is by how many bytes the memory of a loading engine must have grown between two samples to count as progress.
	leastGrowth = 1 << 20
	// busyShare is the share of a processor that an engine computes with at least. An idle one that polls takes less.
	busyShare = 0.01
	// leastComputed is how much processor time counts at least: systems count in hundredths of a second, of which one says nothing.
	leastComputed = 20 * time.Millisecond
)

// usage returns what the engine and the processes that it has started use of the machine.
func (l *Launched) usage(ctx context.Context) child.Usage { return l.group.Usage(ctx, l.PID) }

// sample reports the memory of an engine once it is ready, and whether it has been sent a signal to terminate. While the
// server itself shuts down, such a signal was meant for both, and is ignored here.
func (p *Process) sample(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-p.life.ready:
	}
	every := time.Tick(sampleEvery)
	for {
		if used := p.launched.Load().usage(ctx); used.Resident > 0 {
			p.report(schedule.Measured{Gen: p.gen, Resident: used.Resident})
		}
		p.oomKills.Store(oomKills())
		isEnding := p.host.Ending != nil && p.host.Ending()
		if !isEnding && isAskedToEnd(p.launched.Load().PID) {
			p.report(schedule.EndAsked{Gen: p.gen})
		}
		select {
		case <-ctx.Done():
			return
		case <-every:
		}
	}
}

// watch watches the load of an engine, which may be silent for long, and longer on a busy machine. Growth of its memory is progress.
// Computing counts as output does, so not forever.
func (p *Process) watch(ctx context.Context) {
	var load effort
	launched := p.launched.Load()
	load.sample(time.Now(), launched.usage(ctx))
	for {
		every := time.NewTimer(min(sampleEvery, p.host.stall()/4))
		select {
		case <-ctx.Done():
		case <-p.life.ready:
		case <-every.C:
		}
		if every.Stop(); ctx.Err() != nil || !p.life.isLoading() {
			return
		}
		switch grows, computes := load.sample(time.Now(), launched.usage(ctx)); {
		case grows:
			p.loading.advanced()
		case computes:
			p.loading.heard()
		}
	}
}

// effort compares samples of what an engine uses.
type effort struct {
	at   time.Time // of the last sample; zero: there is none
	cpu  time.Duration
	peak int64 // of the memory, in bytes
}

// sample adds a sample. It reports whether the engine's memory has grown, and whether it has computed since the last one.
func (e *effort) sample(now time.Time, used child.Usage) (grows, computes bool) {
	isFirst := e.at.IsZero()
	if used.Resident >= e.peak+leastGrowth {
		grows = !isFirst
		e.peak = used.Resident
	}
	computed := used.CPU - e.cpu
	computes = !isFirst && computed >= leastComputed && computed.Seconds() >= busyShare*now.Sub(e.at).Seconds()
	e.at, e.cpu = now, used.CPU
	return grows, computes
}

// activity is the result of a query.
type activity struct {
	refused  bool // it accepts no connections
	frozen   bool // it doesn't even answer its health check
	pending  bool // it is alive, but hasn't answered the query: in some builds only its main loop does
	known    bool // work is set
	work     Work
	computes bool // it has computed since the last query that it didn't answer, or can't
}

// probe queries the engine's activity. One that can't tell what it is at is asked whether it answers at all, and the system whether it has
// computed: it uses this much of the machine.
func (u *pulse) probe(used child.Usage) activity {
	worker, ok := u.engine.(Worker)
	if !ok {
		_, _, err := u.get(u.healthPath())
		_, isChecked := u.engine.(HealthChecker)
		isFrozen := isChecked && err != nil && !openfiles.AreExhausted(err)
		return activity{refused: isRefused(err), frozen: isFrozen, computes: u.hasComputed(used)}
	}
	status, body, err := u.get(worker.Activity())
	switch {
	case isRefused(err):
		return activity{refused: true}
	case openfiles.AreExhausted(err):
		return activity{} // nothing was sent
	case err != nil:
		_, _, err := u.get(u.healthPath())
		return activity{refused: isRefused(err), frozen: err != nil, pending: err == nil, computes: u.hasComputed(used)}
	case status != http.StatusOK:
		return activity{computes: u.hasComputed(used)}
	}
	work, ok := worker.Work(body)
	return activity{known: ok, work: work, computes: !ok && u.hasComputed(used)}
}

func (u *pulse) hasComputed(used child.Usage) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, computes := u.effort.sample(time.Now(), used)
	return computes
}

// healthPath is what an engine can be asked to see whether it answers.
func (u *pulse) healthPath() string {
	if checker, ok := u.engine.(HealthChecker); ok {
		return checker.Health()
	}
	return "/"
}

func (u *pulse) get(path string) (status int, body []byte, _ error) {
	ctx, cancel := context.WithTimeout(u.ctx, probeTimeout)
	defer cancel()
	resp, err := u.ask(ctx, path)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	return readAnswer(resp, maxProbe)
}

// refusedOnWindows is WSAECONNREFUSED, which package syscall has no name for.
const refusedOnWindows = syscall.Errno(10061)

// isRefused reports whether nothing listens at the engine's address.
func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) || errors.Is(err, refusedOnWindows)
}
