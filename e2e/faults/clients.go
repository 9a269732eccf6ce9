package faults

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// clientsGone disconnect while a model is loading, in the queue, and during answers.
func clientsGone(r *round) {
	s := r.start(harness.Config{Engine: []string{"parallel 2"}})
	var all sync.WaitGroup
	for i := range 4 + r.upTo(12) {
		after := time.Duration(r.IntN(1500)) * time.Millisecond
		request := harness.Long(8000).With("stream", i%2 == 0)
		all.Go(func() {
			ctx, cancel := context.WithTimeout(r.ctx, after)
			defer cancel()
			send(ctx, alone(), s.Base+harness.ChatPath, request)
		})
	}
	all.Wait()
	c := r.crowd()
	for range 4 {
		c.ask(s, harness.ChatPath, harness.Ask(capital))
	}
	for _, one := range c.want(answered) {
		if one.took > harness.Patience {
			r.Errorf("the next request took %s", one.took)
		}
	}
	engine := s.Engine()
	harness.Eventually(r, harness.Patience, "the engine computes no more", func() bool {
		from := engine.CPU()
		time.Sleep(200 * time.Millisecond)
		return engine.CPU() == from
	})
	harness.Eventually(r, harness.Patience, "no slot is in use", func() bool {
		return strings.Contains(s.Command("ps").Output, " 0/2 ")
	})
}

// bodyFlood has thirty clients send 30 MiB each, all at once. All of them are refused, since no context is that long.
func bodyFlood(r *round) {
	const size, number, most = 30 << 20, 30, 700 // bytes, bodies, MiB
	config := r.parallel()
	if r.binary == "" { // an older one may not know the option
		config.LM = []string{"body_memory 256MiB"}
	}
	s, _ := r.loaded(config)
	memory := r.watchMemory(s)
	prompt := strings.Repeat("lorem ipsum dolor ", size/18)
	var all sync.WaitGroup
	for range number {
		all.Go(func() { r.seen.add(flood(r, s, prompt)) })
	}
	c := r.crowd()
	c.ask(s, harness.ChatPath, harness.Ask(capital)) // another client
	c.want(answered)
	all.Wait()
	grew := memory.peak() - memory.before
	if r.seen.measured(grew, "MiB more than before"); grew > most {
		r.Errorf("the resident memory grew by %.1f MiB", grew)
	}
	r.wantAnswer(s)
}

// flood sends a large body over a plain connection: a client that is refused early can read why.
func flood(_ *round, s *harness.Server, prompt string) outcome {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.Base, "http://"))
	if err != nil {
		return lost
	}
	defer conn.Close() //nolint:errcheck // it was only read
	_ = conn.SetDeadline(time.Now().Add(deadline))
	status := make(chan outcome, 1)
	go func() { status <- statusOf(conn) }()
	head, tail := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"`, harness.Model), `"}]}`
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", // it may be refused meanwhile
		harness.ChatPath, len(head)+len(prompt)+len(tail), head)
	for rest := prompt; rest != ""; {
		piece := rest[:min(len(rest), 64<<10)]
		if _, err := conn.Write([]byte(piece)); err != nil {
			return <-status
		}
		rest = rest[len(piece):]
	}
	_, _ = conn.Write([]byte(tail))
	return <-status
}
