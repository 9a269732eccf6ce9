package process

import (
	"context"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
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
func (p *Process) usage(ctx context.Context) child.Usage {
	l := p.launched.Load()
	return l.group.Usage(ctx, l.PID)
}

// sample reports the memory of an engine once it is ready, and whether it has been sent a signal to terminate. While the
// server itself shuts down, such a signal was meant for both, and is ignored here.
func (p *Process) sample(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-p.life.ready:
	}
	every := time.NewTicker(sampleEvery)
	defer every.Stop()
	for {
		if used := p.usage(ctx); used.Resident > 0 {
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
		case <-every.C:
		}
	}
}

// watch watches the load of an engine, which may be silent for long, and longer on a busy machine. Growth of its memory is progress.
// Computing counts as output does, so not forever.
func (p *Process) watch(ctx context.Context) {
	var load effort
	load.sample(time.Now(), p.usage(ctx))
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
		switch grows, computes := load.sample(time.Now(), p.usage(ctx)); {
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
