package caddymodule

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

func hasEnded(u *underway) bool {
	select {
	case <-u.ended():
		return true
	default:
		return false
	}
}

func TestUnderway_RequestsAreCounted(t *testing.T) {
	t.Parallel()
	var u underway
	if !u.isNothing() || !hasEnded(&u) {
		t.Error("something is under way before anything has begun")
	}
	u.begin()
	u.begin()
	ended := u.ended()
	u.end()
	if u.isNothing() || hasEnded(&u) {
		t.Error("nothing is under way, though one request is")
	}
	u.end()
	if _, open := <-ended; open || !u.isNothing() {
		t.Error("something is under way after the last request")
	}
	over := make(chan struct{})
	close(over)
	u.begin()
	u.wait(over) // doesn't block
	u.end()
	u.wait(nil)
}

// TestUnderway_AnAnswerIsUnderWayUntilItIsWritten: a handler has returned by then.
func TestUnderway_AnAnswerIsUnderWayUntilItIsWritten(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{"kept alive": "keep-alive", "closed": "close"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var u underway
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if u.isNothing() {
					t.Error("nothing is under way amid a request")
				}
				w.Header().Set("Connection", header)
			}))
			server.Config.ConnState = u.connState
			server.Start()
			defer server.Close()
			for range 2 {
				resp, err := server.Client().Get(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			u.wait(nil)
			if len(u.busy) != 0 {
				t.Errorf("%d connections are kept", len(u.busy))
			}
		})
	}
}

func TestUnderway_QuietIsWaitedFor(t *testing.T) {
	t.Parallel()
	const quiet, most = 250 * time.Millisecond, 2 * time.Second
	for name, c := range map[string]struct {
		idle []time.Duration // when connections become idle, before and after the wait begins
		want time.Duration
	}{
		"never used":     {nil, 0},
		"long idle":      {[]time.Duration{-time.Second}, 0},
		"just idle":      {[]time.Duration{-50 * time.Millisecond}, 200 * time.Millisecond},
		"idle meanwhile": {[]time.Duration{-time.Millisecond, 100 * time.Millisecond}, 350 * time.Millisecond},
		"never quiet":    {every(200*time.Millisecond, 3*time.Second), most},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var u underway
				time.Sleep(time.Minute)
				start := time.Now().Add(time.Second)
				for _, at := range c.idle {
					time.AfterFunc(time.Until(start.Add(at)), func() { u.connState(nil, http.StateIdle) })
				}
				time.Sleep(time.Until(start))
				synctest.Wait()
				u.waitQuiet(quiet, most)
				if took := time.Since(start); took != c.want {
					t.Errorf("it took %s, want %s", took, c.want)
				}
				time.Sleep(time.Minute) // the timers end
			})
		})
	}
}

// every is a row of times.
func every(step, end time.Duration) (all []time.Duration) {
	for at := time.Duration(0); at < end; at += step {
		all = append(all, at)
	}
	return all
}
