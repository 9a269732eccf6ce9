package faults

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const (
	gone  = 5 * time.Second // how long an engine may survive after lmcaddy was killed
	slack = 6 * time.Second // how long a shutdown may take beyond the grace period
)

// stored is the ids of the responses that clients received.
type stored struct {
	mu  sync.Mutex
	ids []string
}

// talk has a client continue a conversation, turn by turn, until ctx ends or a request fails.
func (k *stored) talk(c *crowd, s *harness.Server) {
	base := s.Base
	c.all.Go(func() {
		for last := ""; c.ctx.Err() == nil; {
			request := harness.NativeAsk("Hello").With("max_output_tokens", 4)
			if last != "" {
				request = request.After(last)
			}
			one := send(c.ctx, alone(), base+harness.NativeChatPath, request)
			if one.outcome != answered {
				c.add(one)
				return
			}
			c.add(one)
			last = gjson.Get(one.body, "response_id").Str
			k.mu.Lock()
			k.ids = append(k.ids, last)
			k.mu.Unlock()
		}
	})
}

func (k *stored) number() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.ids)
}

// wantStored checks that all of them exist.
func (k *stored) wantStored(r *round, s *harness.Server) {
	for _, id := range k.ids {
		if got := s.Get(harness.ResponsesPath + id); got.Status != http.StatusOK {
			r.Errorf("response %s was acknowledged, and is not there: %d %s", id, got.Status, got.Body)
		}
	}
}

func serverKilled(r *round) {
	config := r.parallel()
	config.Port = harness.FreePort(r)
	s, _ := r.loaded(config)
	c, k := r.crowd(), &stored{}
	for range 1 + r.upTo(4) {
		k.talk(c, s)
	}
	enough := r.upTo(40)
	harness.Eventually(r, harness.Patience, "some are stored", func() bool { return k.number() >= enough })
	s.Kill()
	s.WaitNoEngine(gone)
	c.want(answered, lost, cut) // they can see no more than a broken connection
	s = harness.Start(s.Home, config)
	k.wantStored(r, s)
	r.wantAnswer(s)
}

func serverStopped(r *round) {
	grace := time.Duration(200+r.IntN(1500)) * time.Millisecond
	config := r.parallel()
	config.Grace = grace.String()
	s, engine := r.loaded(config)
	c := r.crowd()
	for i := range 1 + r.upTo(5) {
		c.ask(s, harness.ChatPath, harness.Long(100+r.IntN(3000)).With("stream", i%3 != 0))
	}
	r.busy(engine)
	if status := s.Stop([]syscall.Signal{syscall.SIGTERM, syscall.SIGINT}[r.IntN(2)], grace+slack); status != 0 {
		r.Errorf("status %d", status)
	}
	c.want(answered, "503 shutting_down", "event shutting_down")
}

// twoStarts: of two servers that start at once, one serves completely, and the other changes nothing.
func twoStarts(r *round) {
	home := r.home()
	var both [2]*harness.Server
	for i := range both {
		config := harness.Config{Port: harness.FreePort(r)}
		both[i] = home.Begin(config.Port, "run", "--adapter", "caddyfile", "--config", home.WriteFile("Caddyfile"+strconv.Itoa(i), config.String()))
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond) // varies between rounds
	}
	harness.Eventually(r, harness.Patience, "one of them refuses to start", func() bool { return both[0].HasEnded() || both[1].HasEnded() })
	winner, loser := both[0], both[1]
	if winner.HasEnded() {
		winner, loser = loser, winner
	}
	if status := loser.WaitEnd(harness.Patience); status == 0 || !strings.Contains(loser.Log(), "in use by another lmcaddy") {
		r.Errorf("the loser's status is %d: %s", status, loser.Log())
	}
	for name, url := range map[string]string{"admin.sock": "http://localhost/config/", "lmcaddy.sock": "http://lmcaddy/v1/models"} {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(home.Dir, "run", name))
		}}}
		harness.Eventually(r, harness.Patience/3, "the winner's "+name+" answers", func() bool {
			if winner.HasEnded() {
				r.Fatalf("both have ended: %s", winner.Log())
			}
			resp, err := client.Get(url)
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	}
	c := r.crowd()
	harness.Eventually(r, harness.Patience, "the winner listens", func() bool {
		return send(r.ctx, alone(), winner.Base+harness.ChatPath, harness.Ask(capital)).outcome != lost
	})
	c.ask(winner, harness.ChatPath, harness.Ask(capital))
	c.want(answered)
}
