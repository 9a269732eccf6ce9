package supervisor

import (
	"context"
	"math"
	"time"

	gopsutil "github.com/shirou/gopsutil/v3/process"
)

// sampleEvery is how often a process is looked at.
const sampleEvery = 5 * time.Second

// sample reports what memory a ready process takes, and whether it has been sent a signal to end, from the moment that it is
// ready on. While the server itself is about to end, such a signal was meant for both, and the server sees to it.
func (p *process) sample(ctx context.Context, pid int) {
	select {
	case <-ctx.Done():
		return
	case <-p.loading.ready:
	}
	every := time.NewTicker(sampleEvery)
	defer every.Stop()
	for {
		if resident := residentMemory(ctx, pid); resident > 0 {
			p.report(Measured{p.gen, resident})
		}
		if !p.options.isEnding() && isAskedToEnd(pid) {
			p.report(EndAsked{p.gen})
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// residentMemory is what a process holds of the machine's memory, in bytes; 0 where it can't be told.
func residentMemory(ctx context.Context, pid int) int64 {
	p, err := gopsutil.NewProcessWithContext(ctx, int32(pid)) //nolint:gosec // process ids fit
	if err != nil {
		return 0
	}
	info, err := p.MemoryInfoWithContext(ctx)
	if err != nil {
		return 0
	}
	return int64(min(info.RSS, math.MaxInt64))
}
