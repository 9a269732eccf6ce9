// Package resident keeps what is resident of the program itself small.
package resident

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	checkEvery = 5 * time.Second
	mostUnused = 64 << 20
)

// Watch gives memory back to the system after a flood of requests, once it is used no more: by itself Go collects garbage after two
// minutes, and returns what is free over further minutes. It never returns.
func Watch() {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	before := uint64(0)
	for range time.Tick(checkEvery) {
		metrics.Read(samples)
		free, objects, live := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
		unused := free + objects - min(live, objects)
		if unused > mostUnused && unused <= before {
			debug.FreeOSMemory()
		}
		before = unused
	}
}
