package bench

import (
	"fmt"
	"sync"
	"time"
)

// memory is the resident memory of a process, in bytes: before any request, and the median during the first, the middle and
// the last tenth of the requests.
type memory struct{ before, first, middle, last int64 }

// flat is how much more memory a process may have at the end than at the beginning, to allow for variation between garbage
// collections.
const flat = 1.10

// mostMemory is the target for the memory of ours after many small requests, in MiB.
const mostMemory = 80

func (m memory) growth() float64 { return float64(m.last) / float64(m.first) }

// measureMemory sends requests from 8 clients, after a tenth of their number to warm up.
func measureMemory(t target, w workload, requests int) (m memory, err error) {
	if m.before, err = t.resident(); err != nil {
		return m, err
	}
	var parts [11]int64 // the first is the warm-up: pools fill, and the heap grows to the size that this load needs
	for i := range parts {
		if parts[i], err = residentUnder(load{target: t, work: w, clients: 8, requests: requests / (len(parts) - 1)}); err != nil {
			return m, fmt.Errorf("%s, %s: %w", t.name, w.name, err)
		}
	}
	m.first, m.middle, m.last = parts[1], parts[5], parts[10]
	return m, nil
}

// residentUnder returns the median of the target's memory under a load.
func residentUnder(l load) (int64, error) {
	var (
		seen []int64
		fail error
		wait sync.WaitGroup
		stop = make(chan struct{})
	)
	wait.Go(func() {
		every := time.NewTicker(10 * time.Millisecond)
		defer every.Stop()
		for {
			now, err := l.target.resident()
			if err != nil {
				fail = err
				return
			}
			seen = append(seen, now)
			select {
			case <-stop:
				return
			case <-every.C:
			}
		}
	})
	_, err := l.run()
	close(stop)
	wait.Wait()
	if err != nil || fail != nil {
		return 0, fmt.Errorf("under load: %w", firstOf(err, fail))
	}
	return median(seen), nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
