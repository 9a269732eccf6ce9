package fetch

import (
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

// tuning holds the numbers that tests change.
type tuning struct {
	hub.Limits

	// lastRetry is the longest delay between retries, and attempts their number without a byte before the job fails. That takes about five
	// minutes, enough for a hub to restart or a router to be plugged in again.
	lastRetry time.Duration
	attempts  int
	// checkpoint is the interval of checkpoints, which bounds what is downloaded again after a crash.
	checkpoint time.Duration
	// tick is the interval at which subscribers are notified.
	tick time.Duration
	// chunk is the length of one range request, in bytes.
	chunk int64
	// parallelFrom is the size from which files are downloaded in parallel ranges, in bytes.
	parallelFrom int64
}

var standard = tuning{
	Limits:       hub.DefaultLimits,
	lastRetry:    60 * time.Second,
	attempts:     12,
	checkpoint:   time.Second,
	tick:         250 * time.Millisecond,
	chunk:        64 << 20,
	parallelFrom: 96 << 20,
}
