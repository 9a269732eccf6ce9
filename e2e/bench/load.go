package bench

import (
	"errors"
	"sync"
	"time"
)

// load is a number of clients that each send a request as soon as the last one is answered.
type load struct {
	target   target
	work     workload
	clients  int
	requests int           // at least, of all clients together
	lasting  time.Duration // at least
}

// sample is the result of a load.
type sample struct {
	latencies []time.Duration // to the answer's end
	took      time.Duration
	cpu       time.Duration // of the proxy
	resident  int64         // the proxy's memory at the end, in bytes
}

// run runs the load. The first request of each client isn't counted.
func (l load) run() (s sample, err error) {
	request := l.work.request(l.target)
	clients := make([]*client, l.clients)
	for i := range clients {
		if clients[i], err = dial(l.target.address); err != nil {
			return s, err
		}
		defer clients[i].close()
		if err := clients[i].learn(request, l.work.gathered(l.target), l.work.events); err != nil {
			return s, err
		}
	}
	before, err := l.target.cpu()
	if err != nil {
		return s, err
	}
	begin := time.Now()
	s.latencies, err = l.send(clients, request, begin)
	s.took = time.Since(begin)
	if err != nil {
		return s, err
	}
	after, err := l.target.cpu()
	if err != nil {
		return s, err
	}
	s.cpu = after - before
	s.resident, err = l.target.resident()
	return s, err
}

func (l load) send(clients []*client, request []byte, begin time.Time) ([]time.Duration, error) {
	var (
		all   = make([][]time.Duration, len(clients))
		fails = make([]error, len(clients))
		wait  sync.WaitGroup
		each  = max(1, l.requests/len(clients))
	)
	for i, c := range clients {
		wait.Go(func() {
			for now := time.Now(); len(all[i]) < each || now.Sub(begin) < l.lasting; {
				if fails[i] = c.do(request); fails[i] != nil {
					return
				}
				end := time.Now()
				all[i] = append(all[i], end.Sub(now))
				now = end
			}
		})
	}
	wait.Wait()
	var latencies []time.Duration
	for _, some := range all {
		latencies = append(latencies, some...)
	}
	return latencies, errors.Join(fails...)
}
