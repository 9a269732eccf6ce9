package fetch

import "time"

// tuning holds the numbers that tests change.
type tuning struct {
	// stall is how long a server may send nothing before the connection is closed.
	stall time.Duration
	// firstRetry is the delay of the first retry after bytes have arrived. The delay doubles with each retry, up to lastRetry.
	// firstRetry must be one second at most.
	firstRetry, lastRetry time.Duration
	// tries is the number of attempts without a byte before the job fails. With the delays above that takes about five minutes,
	// enough for a hub to restart or a router to be plugged in again.
	tries int
	// apiTries and apiPatience bound the retries while a client waits for Start.
	apiTries    int
	apiPatience time.Duration
	// search is how long each step of a search may take: the question to all hubs, and the look at what they found.
	search time.Duration
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
	stall:        60 * time.Second,
	firstRetry:   500 * time.Millisecond,
	lastRetry:    60 * time.Second,
	tries:        12,
	apiTries:     3,
	apiPatience:  5 * time.Second,
	search:       15 * time.Second,
	checkpoint:   time.Second,
	tick:         250 * time.Millisecond,
	chunk:        64 << 20,
	parallelFrom: 96 << 20,
}
