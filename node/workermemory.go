package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

const (
	// workerAge is how long the answer of a worker is used, and failureAge how long it isn't asked again when it has given none.
	workerAge  = time.Minute
	failureAge = 5 * time.Second
	// workerMargin is what llama-server leaves free of a worker, in bytes.
	workerMargin = 1 << 30
)

// workerState is what is known of a worker.
type workerState struct {
	memory supervisor.WorkerMemory // when it computed for nobody
	err    error                   // why that isn't known
	at     time.Time
}

func (s *workerState) isFresh() bool {
	if s.err != nil {
		return time.Since(s.at) < failureAge
	}
	return time.Since(s.at) < workerAge
}

// askWorkers asks the workers of a model what memory they have, unless that is known. Workers of instances are left alone: they
// answer nobody else.
func (n *Node) askWorkers(ctx context.Context, e *engine, addresses []string) {
	asker, ok := e.process.(supervisor.WorkerAsker)
	if !ok || len(addresses) == 0 {
		return
	}
	n.asking.Lock() // many requests may want to know it at once
	defer n.asking.Unlock()
	var used []string
	for _, in := range n.supervisor.Instances() {
		used = append(used, in.Spec.RPC...)
	}
	var asking sync.WaitGroup
	for _, address := range addresses {
		known, ok := n.workerAt(address)
		if slices.Contains(used, address) {
			n.workers.Store(address, workerState{memory: known.memory, at: time.Now()}) // what was wrong with it isn't any more
			continue
		}
		if ok && known.isFresh() {
			continue
		}
		asking.Go(func() {
			memory, err := asker.AskWorker(ctx, address)
			if err != nil && ctx.Err() != nil {
				return
			}
			n.workers.Store(address, workerState{memory, err, time.Now()})
			n.specs.Clear()
		})
	}
	asking.Wait()
}

func (n *Node) workerAt(address string) (workerState, bool) {
	v, ok := n.workers.Load(address)
	if !ok {
		return workerState{}, false
	}
	return v.(workerState), true
}

// askAllWorkers asks the workers of all models.
func (n *Node) askAllWorkers(s *Settings) {
	var all []string
	for _, m := range s.Models {
		all = append(all, m.RPC...)
	}
	slices.Sort(all)
	for _, e := range n.inOrder {
		if e.Workers {
			n.askWorkers(n.ctx, e, slices.Compact(all))
		}
	}
}

// spread returns how much of a model's memory is on this machine, and on its workers, in bytes. The workers are filled first. Those
// whose memory isn't known are taken to have enough: a load then shows it. Each computes in buffers of its own.
func (n *Node) spread(spec *supervisor.Spec, m catalog.Memory) (here, elsewhere int64) {
	if len(spec.RPC) == 0 {
		return m.Total(), 0
	}
	elsewhere = m.Weights + m.KVCache
	var room int64
	for _, address := range spec.RPC {
		known, _ := n.workerAt(address)
		if known.memory.Total == 0 {
			room = elsewhere
			break
		}
		room += max(0, known.memory.Free-workerMargin-m.Compute)
	}
	elsewhere = min(elsewhere, room)
	here = m.Total() - elsewhere
	if elsewhere > 0 {
		elsewhere += m.Compute * int64(len(spec.RPC))
	}
	return here, elsewhere
}

// onWorkers returns how much of a model's memory is on its workers, in bytes.
func (n *Node) onWorkers(spec *supervisor.Spec) int64 {
	e := n.engines[spec.Engine]
	if len(spec.RPC) == 0 || e.Estimate == nil {
		return 0
	}
	memory, err := e.Estimate(spec)
	if err != nil {
		return 0
	}
	_, elsewhere := n.spread(spec, memory)
	return elsewhere
}

// WorkerForecast is what is known of a worker that a load would use.
type WorkerForecast struct {
	Address     string
	Total, Free int64  // when it computed for nobody; 0: unknown
	Problem     string // why it can't be used now; empty: nothing is known against it
}

func (n *Node) forecastWorkers(spec *supervisor.Spec) []WorkerForecast {
	var all []WorkerForecast
	for _, address := range spec.RPC {
		known, _ := n.workerAt(address)
		w := WorkerForecast{Address: address, Total: known.memory.Total, Free: known.memory.Free}
		if known.err != nil {
			w.Problem = known.err.Error()
		}
		all = append(all, w)
	}
	return all
}
