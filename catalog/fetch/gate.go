package fetch

import (
	"context"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
)

// gate delays requests while the hub asks for a pause.
type gate struct {
	mu    sync.Mutex
	until time.Time
}

func (g *gate) shut(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until.After(g.until) {
		g.until = until
	}
}

func (g *gate) wait(ctx context.Context) error {
	g.mu.Lock()
	left := time.Until(g.until)
	g.mu.Unlock()
	return outbound.Sleep(ctx, left)
}

// every calls do at each interval until stop is called. stop waits for a running call.
func every(ctx context.Context, interval time.Duration, do func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for outbound.Sleep(ctx, interval) == nil {
			do()
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// gates holds one gate for each hub.
type gates struct {
	mu  sync.Mutex
	all map[string]*gate
}

func (g *gates) of(h *hub.Hub) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = map[string]*gate{}
	}
	if g.all[h.String()] == nil {
		g.all[h.String()] = &gate{}
	}
	return g.all[h.String()]
}
