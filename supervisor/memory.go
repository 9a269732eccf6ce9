package supervisor

import (
	"context"
	"math"
	"time"

	gopsutil "github.com/shirou/gopsutil/v3/process"
)

// sampleEvery is the interval between samples of a process.
const sampleEvery = 5 * time.Second

// sample reports the memory of a process once it is ready, and whether it has been sent a signal to terminate. While the
// server itself shuts down, such a signal was meant for both, and is ignored here.
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

// residentMemory returns the resident memory of a process in bytes; 0: unknown.
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
