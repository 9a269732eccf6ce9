package fakemlx

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// thread is the real server's generation thread: it loads the model, takes one request after the other, and lets those of one model that have
// no seed run side by side.
type thread struct {
	*process
	queue  chan *generation
	halt   chan struct{}
	ended  chan struct{}
	batch  sync.WaitGroup
	places chan struct{} // of the batch
	model  *model
	cache  promptCache

	backend *backend
	// plain says that the last request of the batch to end had no logits processor. By an oversight of the real server, the next one's is
	// then forgotten after its first token.
	plain atomic.Bool
}

func newThread(p *process) *thread {
	return &thread{
		process: p, queue: make(chan *generation, 1<<16), halt: make(chan struct{}), ended: make(chan struct{}),
		places: make(chan struct{}, p.args.decode), cache: promptCache{size: p.args.cacheSize},
	}
}

// run is the thread's life. It ends by an exception or by stop.
func (t *thread) run() {
	defer close(t.ended)
	if t.args.model != "" {
		if err := t.loadDefault(); err != nil {
			t.perish(err, 0)
			return
		}
		t.Tell(fakekit.Event{Kind: fakekit.Ready, Port: t.server.port})
		fakekit.MakeNoise(t.script().Noise, fakekit.AtReady)
	}
	current := ""
	for {
		select {
		case <-t.halt:
			return
		case <-t.dead:
			return
		case g := <-t.queue:
			if g.ask.model != current || g.ask.body["draft_model"] != nil {
				t.batch.Wait()
				t.plain.Store(false)
				if err := t.load(g.ask.model, g.ask.body["draft_model"]); err != nil {
					current = ""
					g.end(g.refuse(err))
					continue
				}
				current = g.ask.model
			}
			if g.alone {
				t.batch.Wait()
				t.plain.Store(false)
				g.end(g.run())
				continue
			}
			t.add(g)
		}
	}
}

// add lets a request into the batch.
func (t *thread) add(g *generation) {
	t.batch.Go(func() {
		select {
		case t.places <- struct{}{}:
		default:
			t.Tell(fakekit.Event{Kind: fakekit.Queued, N: g.n})
			t.places <- struct{}{}
		}
		g.ask.lost = t.plain.Swap(false) && g.ask.processed
		err := g.run()
		t.plain.Store(!g.ask.processed)
		g.end(err)
		<-t.places
	})
}

// stop ends the thread, once the request that is served alone has ended.
func (t *thread) stop() {
	close(t.halt)
	select {
	case <-t.ended:
	case <-t.dead:
	}
}

// loadDefault loads the model given by --model, as the script says.
func (t *thread) loadDefault() error {
	load := t.script().Load
	if load.Duration > 0 {
		t.pass(load.Busy, time.After(load.Duration), func() bool { return false })
	}
	if load.Gate != "" {
		t.Tell(fakekit.Event{Kind: fakekit.Gated, Gate: load.Gate})
		t.pass(load.Busy, nil, func() bool { return t.IsOpen(load.Gate) })
	}
	if load.Hang {
		if !load.Busy {
			select {} // without a poll: whoever watches the process must see that it does nothing
		}
		t.pass(load.Busy, nil, func() bool { return false })
	}
	if load.Die != nil {
		t.Die(*load.Die, t.args.model, "load failure")
	}
	if load.Fail != "" {
		return parseException(load.Fail, "")
	}
	m, err := openModel(t.script(), t.args.model)
	if err != nil {
		return err
	}
	if b := t.script().Backend; b != nil && t.backend == nil {
		if t.backend, err = b.start(); err != nil {
			t.Exit(fakekit.ExitBroken, err.Error())
		}
	}
	t.model = m
	return nil
}

// load makes a model the current one, with a draft model that may be named. The one before is given up first, whether or not there is another.
func (t *thread) load(name string, draft any) error {
	if draft, ok := draft.(string); ok && draft != "default_model" {
		t.model = nil
		_, err := openModel(t.script(), draft)
		return err
	}
	path := name
	if name == "default_model" {
		path = t.args.model
	}
	if t.model != nil && t.model.path == path {
		return nil
	}
	t.model = nil
	if path == "" && name == "default_model" {
		return raise("TypeError", "argument should be a str or an os.PathLike object where __fspath__ returns a str, not 'NoneType'")
	}
	if name == "default_model" {
		return t.loadDefault()
	}
	m, err := openModel(t.script(), path)
	if err == nil {
		m.path, t.model = name, m
	}
	return err
}

// pass lets time pass until it is over or a condition holds, and burns processor time meanwhile if it is busy.
func (p *process) pass(busy bool, over <-chan time.Time, done func() bool) {
	for !done() {
		if busy {
			for begin := time.Now(); time.Since(begin) < fakekit.PollEvery; {
			}
		}
		select {
		case <-over:
			return
		case <-time.After(fakekit.PollEvery):
		}
	}
}

// perish is the end of the generation thread by an exception. The process lives on, and answers no request any more.
func (p *process) perish(err error, n int) {
	p.dieOnce.Do(func() {
		var e *exception
		if !errors.As(err, &e) {
			e = raise("RuntimeError", "%v", err)
		}
		close(p.dead) // before it is told: who reads of it must get no answer any more
		e.inThread()
		p.Tell(fakekit.Event{Kind: fakekit.Stuck, N: n, Reason: e.line()})
	})
}

// stall hangs the generation thread without a word.
func (p *process) stall(n int) {
	p.dieOnce.Do(func() {
		p.Tell(fakekit.Event{Kind: fakekit.Stuck, N: n})
		close(p.dead)
	})
}
