package child

import (
	"context"
	"math"
	"time"

	"github.com/shirou/gopsutil/v3/net"
)

// Usage is what the processes of a group use of the machine.
type Usage struct {
	CPU      time.Duration // of all processors, since the processes were started
	Resident int64         // bytes of memory; what several processes share is counted for each
	Waited   time.Duration // for which the main thread of the child was ready to run and had no processor; 0 where the system doesn't tell
}

// Usage returns what the group uses that belongs to the child with the given id. It is zero if that can't be found out.
func (g Group) Usage(ctx context.Context, pid int) Usage {
	sum := Usage{Waited: waited(pid)}
	for _, member := range g.members(ctx, pid) {
		p, err := lookUp(member)
		if err != nil {
			continue
		}
		if times, err := p.TimesWithContext(ctx); err == nil {
			sum.CPU += time.Duration((times.User + times.System) * float64(time.Second))
		}
		if info, err := p.MemoryInfoWithContext(ctx); err == nil {
			sum.Resident += int64(min(info.RSS, math.MaxInt64))
		}
	}
	return sum
}

// listening is the state of a socket that accepts connections.
const listening = "LISTEN"

// Listens reports whether the group that belongs to the child with the given id listens on a TCP port. If the system doesn't
// tell, it is true.
func (g Group) Listens(ctx context.Context, pid, port int) bool {
	for _, member := range g.members(ctx, pid) {
		sockets, err := net.ConnectionsPidWithContext(ctx, "tcp", member)
		if err != nil && ctx.Err() == nil {
			return true
		}
		for _, s := range sockets {
			if s.Status == listening && int(s.Laddr.Port) == port {
				return true
			}
		}
	}
	return false
}
