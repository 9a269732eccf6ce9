package faults

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// reloadsUnderStreams changes the settings while streams run.
func reloadsUnderStreams(r *round) {
	config := r.parallel()
	config.Port = harness.FreePort(r)
	s, engine := r.loaded(config)
	for range r.upTo(2) {
		c := r.crowd()
		c.chats(s, 1+r.upTo(3), 500)
		r.busy(engine)
		for range r.upTo(3) {
			config.LM = []string{fmt.Sprintf("idle_ttl %dm", 10+r.IntN(60))}
			if got := s.Reload(config.String()); got.Status != 0 {
				r.Errorf("the reload failed: %s", got.Output)
			}
		}
		c.want(answered)
	}
	r.wantAnswer(s)
	if now := s.Engine(); now.PID != engine.PID {
		r.Errorf("the engine was process %d, and is %d", engine.PID, now.PID)
	}
}

// reloadWhileLoading changes the settings while clients wait for a model.
func reloadWhileLoading(r *round) {
	config := r.parallel()
	config.Port = harness.FreePort(r)
	s := r.start(config)
	c := r.crowd()
	c.chats(s, 1+r.upTo(5), 50)
	if r.IntN(2) == 0 {
		harness.Eventually(r, harness.Patience, "an engine has started", func() bool { return len(s.Engines()) > 0 })
	} else {
		harness.Eventually(r, harness.Patience, "they are waiting", func() bool { return strings.Contains(s.Log(), "loading model") })
	}
	config.LM = []string{fmt.Sprintf("idle_ttl %dm", 10+r.IntN(60))}
	if got := s.Reload(config.String()); got.Status != 0 {
		r.Errorf("the reload failed: %s", got.Output)
	}
	c.want(answered)
	r.wantAnswer(s)
	s.Engine()
}

// reloadsUnderShortStreams reloads the configuration again and again while clients stream short answers: half of them with a connection for
// each request, the others with one that is kept. A request for which a connection was opened must be answered.
func reloadsUnderShortStreams(r *round) {
	const clients, reloads = 24, 12
	config := r.parallel("queue 0")
	config.Port = harness.FreePort(r)
	s, engine := r.loaded(config)
	c, over := r.crowd(), atomic.Bool{}
	short := harness.Ask(capital).With("max_tokens", 2).With("stream", true)
	for i := range clients {
		client := alone()
		if i%2 == 0 {
			client = &http.Client{Transport: &http.Transport{}}
		}
		c.all.Go(func() {
			for !over.Load() {
				c.add(send(c.ctx, client, s.Base+harness.ChatPath, short))
			}
		})
	}
	admin := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.Dir, "run", "admin.sock"))
	}}}
	for i := range reloads {
		switch r.IntN(3) {
		case 0: // the same once more
			if got := s.Command("reload", "--force", "--config", s.WriteFile("Caddyfile", config.String())); got.Status != 0 {
				r.Errorf("the reload failed: %s", got.Output)
			}
		case 1:
			config.LM = []string{"queue 0", fmt.Sprintf("idle_ttl %dm", 10+i)}
			if got := s.Command("reload", "--config", s.WriteFile("Caddyfile", config.String())); got.Status != 0 {
				r.Errorf("the reload failed: %s", got.Output)
			}
		default:
			config.LM = []string{"queue 0", fmt.Sprintf("idle_ttl %dm", 100+i)}
			resp, err := admin.Post("http://localhost/load", "text/caddyfile", strings.NewReader(config.String()))
			if err != nil {
				r.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				r.Errorf("/load has status %d", resp.StatusCode)
			}
		}
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond) // the phase varies
	}
	over.Store(true)
	c.want(answered, raced)
	if now := s.Engine(); now.PID != engine.PID {
		r.Errorf("the engine was process %d, and is %d", engine.PID, now.PID)
	}
}
