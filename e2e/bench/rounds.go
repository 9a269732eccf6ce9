package bench

import (
	"fmt"
	"time"
)

// plan is the extent of the measurement.
type plan struct {
	rounds   int
	requests int           // of a load, at least
	lasting  time.Duration // of a load, at least
	clients  []int
	loads    []workload
	small    int // requests of the memory measurement
	large    int
	swaps    int
}

type key struct {
	work    string
	clients int
	target  string
}

// results has, for each key, a series with the figures of each round.
type results map[key]series

// measureProxies runs every load on every target, in rounds. The order changes from load to load, so that no target always
// follows the same other one.
func measureProxies(s site, p plan) (results, error) {
	all := results{}
	turn := 0
	for range p.rounds {
		for _, w := range p.loads {
			for _, clients := range p.clients {
				targets := s.targetsOf(w)
				for i := range targets {
					t := targets[(i+turn)%len(targets)]
					got, err := load{target: t, work: w, clients: clients, requests: p.requests, lasting: p.lasting}.run()
					if err != nil {
						return nil, fmt.Errorf("%s, %s: %w", t.name, w.name, err)
					}
					k := key{w.name, clients, t.name}
					all[k] = append(all[k], figuresOf(got, w))
				}
				turn++
			}
		}
	}
	return all, nil
}

// targetsOf returns the targets to which a workload applies.
func (s site) targetsOf(w workload) []target {
	var some []target
	for _, t := range s.targets {
		if t.applies(w) {
			some = append(some, t)
		}
	}
	return some
}
