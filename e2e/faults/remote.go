package faults

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// unreachable is what clients see of a remote that is away.
const unreachable outcome = "503 remote_unreachable"

// kinds are those of remotes: an lmcaddy speaks as all of them do.
var kinds = []string{"lmcaddy", "lmstudio", "ollama", "llama_server", "vllm", "sglang", "openai"}

// soon is how long after its return a remote may get no requests, and fewRefused how many may be refused in a short outage.
const (
	soon       = 1500 * time.Millisecond
	fewRefused = 5
)

// gate is the way to a server, which can be shut.
type gate struct {
	r       *round
	address string
	to      string

	mu       sync.Mutex
	listener net.Listener // nil: it is shut
	open     map[net.Conn]bool
}

func newGate(r *round, s *harness.Server) *gate {
	g := &gate{r: r, address: fmt.Sprintf("127.0.0.1:%d", harness.FreePort(r)), to: strings.TrimPrefix(s.Base, "http://"), open: map[net.Conn]bool{}}
	g.reopen()
	r.Cleanup(g.shut)
	return g
}

func (g *gate) reopen() {
	listener, err := net.Listen("tcp", g.address)
	if err != nil {
		g.r.Fatal(err)
	}
	g.mu.Lock()
	g.listener = listener
	g.mu.Unlock()
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go g.pass(from)
		}
	}()
}

// pass passes on what a connection says, until either end closes it.
func (g *gate) pass(from net.Conn) {
	to, err := net.Dial("tcp", g.to)
	if err != nil {
		_ = from.Close()
		return
	}
	g.mu.Lock()
	isShut := g.listener == nil
	g.open[from], g.open[to] = true, true
	g.mu.Unlock()
	end := func() {
		_, _ = from.Close(), to.Close()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, from)
		delete(g.open, to)
	}
	if isShut {
		end()
		return
	}
	go func() {
		defer end()
		_, _ = io.Copy(to, from)
	}()
	defer end()
	_, _ = io.Copy(from, to)
}

// shut resets all connections, and has further ones refused.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener == nil {
		return
	}
	_ = g.listener.Close()
	g.listener = nil
	for conn := range g.open {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

// outage takes the only remote of a server away for a time, while clients ask for its model.
func (r *round) outage(length time.Duration) {
	kind := kinds[r.IntN(len(kinds))]
	box, _ := r.loaded(r.parallel())
	g := newGate(r, box)
	home := harness.NewBareHome(r)
	home.Binary, home.Path = r.binary, os.Getenv("PATH")
	door := harness.Start(home, harness.Config{LM: []string{fmt.Sprintf("remote http://%s {\n\t\t\tname box\n\t\t\tkind %s\n\t\t}", g.address, kind)}})
	short := harness.Ask(capital).With("max_tokens", 4)
	harness.Eventually(r, harness.Patience, "the remote answers", func() bool {
		return send(r.ctx, alone(), door.Base+harness.ChatPath, short).outcome == answered
	})
	c := r.crowd()
	over := make(chan struct{})
	for range 4 {
		c.all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					c.add(send(c.ctx, alone(), door.Base+harness.ChatPath, short))
				}
			}
		})
	}
	time.Sleep(time.Duration(200+r.IntN(300)) * time.Millisecond) // the phase varies
	g.shut()
	time.Sleep(length)
	g.reopen()
	begun := time.Now()
	harness.Eventually(r, harness.Patience, "the remote answers again", func() bool {
		return send(r.ctx, alone(), door.Base+harness.ChatPath, short).outcome == answered
	})
	if took := time.Since(begun); took > soon {
		r.Errorf("a remote of the kind %s, away for %s, answers %s after its return", kind, length, took.Round(time.Millisecond))
	}
	close(over)
	refused := 0
	for _, one := range c.want(answered, unreachable) {
		if one.outcome == unreachable {
			refused++
		}
	}
	if length < time.Second && refused > fewRefused {
		r.Errorf("a remote of the kind %s, away for %s: %d requests were refused", kind, length, refused)
	}
}

func remoteAwayShortly(r *round) {
	r.outage([]time.Duration{200 * time.Millisecond, 500 * time.Millisecond}[r.IntN(2)])
}

func remoteAway(r *round) {
	r.outage([]time.Duration{3 * time.Second, 12 * time.Second}[r.IntN(2)])
}

const nodeOfCluster = `{
	admin unix/{$LMCADDY_HOME}/run/admin.sock|0600
	grace_period 5s
	lm {
		store postgres %q
		cluster http://127.0.0.1:%d
		engine llama_server {
			args --threads 1
		}
	}
}

http://:%d {
	bind 127.0.0.1
	lm_api
}
`

// nodeKilled kills the node of a cluster that runs the model, while clients ask the other one, and starts it again.
func nodeKilled(r *round) {
	database := harness.StartPostgres(r, nil)
	launch := func(h *harness.Home, port int) *harness.Server {
		return h.Launch(port, "run", "--config", h.WriteFile("Caddyfile", fmt.Sprintf(nodeOfCluster, database.URL, port, port)))
	}
	home, port := r.home(), harness.FreePort(r)
	there := launch(home, port)
	r.wantAnswer(there)
	here := launch(r.home(), harness.FreePort(r))
	is := func(status string) func() bool {
		return func() bool {
			return here.Get("/api/v1/ps").Get(fmt.Sprintf(`nodes.#(name=="127.0.0.1:%d").status`, port)).Str == status
		}
	}
	harness.Eventually(r, harness.Patience, "the nodes have found each other", is("connected"))
	c := r.crowd()
	for range 4 {
		c.ask(here, harness.ChatPath, harness.Long(200))
	}
	time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond) // the phase varies
	there.Kill()
	harness.Eventually(r, harness.Patience, "that is noticed", is("unreachable"))
	c.want(answered)
	time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond) // likewise
	launch(home, port)
	begun := time.Now()
	harness.Eventually(r, harness.Patience, "the node is back", is("connected"))
	if took := time.Since(begun); took > soon {
		r.Errorf("a node is back %s after it answers again", took.Round(time.Millisecond))
	}
	r.wantAnswer(here)
}
