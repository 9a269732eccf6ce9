package fetch

import "time"

// tuning is the numbers that tests make smaller.
type tuning struct {
	// stall is how long a server may say nothing before the connection is given up.
	stall time.Duration
	// firstRetry is the wait before the first retry after bytes have come; the next waits double, up to lastRetry. The first
	// must stay at a second or less.
	firstRetry, lastRetry time.Duration
	// tries is how often a part is asked for in a row, without a byte coming, before the job fails: with the waits above
	// about five minutes, enough for a hub that restarts or a router that is plugged in again.
	tries int
	// apiTries and apiPatience bound the retries while a client waits for the start of its download.
	apiTries    int
	apiPatience time.Duration
	// checkpoint is how often what is on the disk is written down, so how much is fetched again after a crash.
	checkpoint time.Duration
	// tick is how often those who watch a job are told.
	tick time.Duration
	// chunk is how much one request asks for where a file is fetched in parallel parts.
	chunk int64
	// parallelFrom is the size of files that are fetched in parallel parts.
	parallelFrom int64
}

var standard = tuning{
	stall:        60 * time.Second,
	firstRetry:   500 * time.Millisecond,
	lastRetry:    60 * time.Second,
	tries:        12,
	apiTries:     3,
	apiPatience:  5 * time.Second,
	checkpoint:   time.Second,
	tick:         250 * time.Millisecond,
	chunk:        64 << 20,
	parallelFrom: 96 << 20,
}
